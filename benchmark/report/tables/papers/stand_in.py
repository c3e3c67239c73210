"""Which runs on stand-in data fill the place of a published row, so that a table can be seen before its data are."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.verdicts.matching import Facts, match_published
from benchmark.study.stand_in import LARGEST_BATCH

# A row of a transformer is filled by the small transformer, every other row by the small convolutional network.
TRANSFORMERS = ("deit",)
SMALL_TRANSFORMER = "vit"
# Evaluated on data that no study has, so that no run stands for them (references/published/outside.yaml).
NO_DATA = ("vggface2", "ijbc", "roxford_1m", "rparis_1m")


def stand_in_cell(
    row: dict[str, Any], dataset: str, cells: list[tuple], facts: Facts
) -> tuple | None:
    """Returns the cell on ``dataset`` whose loss, options and batch size come closest to those of a row, or None.

    The row's data set, backbone and training set are given up, and batch sizes are cut to the stand-in's largest;
    its width and its sampling are given up where the stand-in has no such option.
    """
    if row["dataset"] in NO_DATA:
        return None
    kind = [cell for cell in cells if same_kind(row["backbone"], cell[1])]
    implied = dict(part.split("=") for part in row["implied"].split(";") if part)
    implied.pop("training", None)
    stated = implied.pop("batch_size", None) if pd.isna(row["batch_size"]) else row["batch_size"]
    size = pd.NA if stated is None else min(int(stated), LARGEST_BATCH)
    options = {option for cell in kind for option in cell[1].split("~")[1:]}
    attempts = [(row["embedding_dim"], row["condition"]), ("", row["condition"])]
    if not options & {part.partition("=")[2] for part in row["condition"].split(";")}:
        attempts.append(("", ""))
    for dim, condition in attempts:
        asked = {
            **row,
            "dataset": dataset,
            "backbone": "",
            "batch_size": size,
            "embedding_dim": dim,
            "condition": condition,
            "implied": ";".join(f"{key}={value}" for key, value in implied.items()),
        }
        found = match_published(asked, kind or cells, {}, facts).cell
        if found is not None:
            return found
    return None


def same_kind(backbone: str, setting: str) -> bool:
    """Returns whether a stand-in's setting is of the kind (transformer or not) of a published backbone."""
    return backbone.startswith(TRANSFORMERS) == (SMALL_TRANSFORMER in setting)
