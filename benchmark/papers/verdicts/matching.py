"""Which of our runs belong to a published number.

A cell (dataset, setting, loss, batch size) belongs to a row if every fact that the row states or implies holds for
it, and if everything special about the cell is stated by the row:

1. dataset, loss, batch size: equal where stated. The loss is compared by registry name; a row may be a loss with
   an option (``METHODS``). The dataset is the one trained on, or one that a protocol of it is named after.
2. backbone: as ``facts`` says, else the setting's label before the first "~".
3. embedding dimension: from ``facts`` or a setting option "dim<number>"; unknown dimensions match no stated one,
   and a row that states none does not match such an option.
4. conditions (sampling=random, tau=0.1): each is met by ``facts``, or by a setting option or a variant's suffix
   named "<value>", "<key><value>" or "<key>_<value>".
5. Options and suffixes that meet no condition and no dimension rule the cell out, except "paper" and
   "authors_code", which name other readings of the same row than the plain one, which goes first; and except
   "timing", whose runs count for rows that are no scores.
6. protocol: the split of that name, after the dataset's where that is not the training set; a row without one means
   "test", or the only test split there is. "+aqe" behind it, or the condition expansion=aqe, means the split of
   expanded queries, which the same runs have.

Facts that a row leaves open do not restrict it; if several cells remain, the row is ambiguous and is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmark.metrics.expansion import SPLIT_SUFFIX
from benchmark.stats.runs import CELL

READINGS = ("paper", "authors_code")
TIMING = "timing"
METHODS = {"xbm": ("contrastive", "method=xbm")}  # published method -> (loss, condition)
EXPANSION = ("expansion", "aqe")  # a condition that chooses a split, not runs
Facts = Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Match:
    """The cell (values of ``CELL``) and split that belong to a row, or None and the reason."""

    cell: tuple | None
    split: str = ""
    reason: str = ""


def match_published(
    row: Mapping[str, Any], cells: list[tuple], splits: Mapping[tuple, set[str]], facts: Facts
) -> Match:
    """Returns the cell of ``cells`` (tuples of ``CELL``) that belongs to the published ``row``.

    ``splits`` gives the test splits of each cell with scores. ``facts`` maps (dataset, setting) to
    {"backbone", "embedding_dim"}, as the study knows them.
    """
    here = [cell for cell in cells if row["dataset"] in places(cell, facts)]
    if not here:
        return Match(None, reason=f"no run on {row['dataset'] or 'an unnamed dataset'}")
    if not any(cell[3] == loss_of(row) for cell in here):
        return Match(None, reason=f"no run of {row['loss']} on {row['dataset']}")
    fitting = fitting_cells(row, cells, facts)
    if not fitting:
        return Match(
            None, reason=f"no run of {row['loss']} on {row['dataset']} with {stated_facts(row)}"
        )
    for reading in (None, *READINGS):
        readings = [cell for cell in fitting if _reading(cell) == reading]
        if len(readings) == 1:
            cell = readings[0]
            return Match(cell, _split(row, cell, splits.get(cell, set())))
        if readings:
            names = ", ".join(f"{cell[1]}/{cell[2]}/bs{cell[4]}" for cell in readings)
            return Match(
                None,
                reason=f"ambiguous: the row states only {stated_facts(row)}; fitting are {names}",
            )
    return Match(
        None, reason=f"no run of {row['loss']} on {row['dataset']} under one reading of the row"
    )


def fitting_cells(row: Mapping[str, Any], cells: list[tuple], facts: Facts) -> list[tuple]:
    """Returns the cells of ``cells`` for which rules 1 to 5 hold."""
    return [
        cell
        for cell in cells
        if row["dataset"] in places(cell, facts)
        and cell[3] == loss_of(row)
        and fits(row, cell, facts.get((cell[0], cell[1]), {}))
    ]


def places(cell: tuple, facts: Facts) -> tuple[str, ...]:
    """Returns the datasets that the scores of a cell are measured on."""
    return (cell[0], *facts.get((cell[0], cell[1]), {}).get("evaluates", ()))


def loss_of(row: Mapping[str, Any]) -> str:
    """Returns the registry name of a row's loss."""
    return METHODS.get(row["loss"], (row["loss"],))[0]


def conditions_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Returns the key=value facts that a row states or implies beyond its columns."""
    texts = [row["condition"], row.get("implied", ""), *METHODS.get(row["loss"], ("",))[1:]]
    return dict(
        condition.split("=") for text in texts for condition in filter(None, text.split(";"))
    )


def fits(row: Mapping[str, Any], cell: tuple, facts: Mapping[str, Any]) -> bool:
    """Returns whether rules 2 to 5 (and the batch size) hold for one cell of the row's dataset and loss."""
    place = dict(zip(CELL, cell, strict=True))
    label, *options = place["setting"].split("~")
    tags = set(options) | {_suffix(place["loss"], place["base_loss"])} - {""}
    dim = facts.get("embedding_dim")
    for tag in list(tags):
        if row["embedding_dim"] and tag.startswith("dim") and tag[3:].isdigit():
            dim = int(tag[3:])
            tags.discard(tag)
    if row["backbone"] and row["backbone"] != facts.get("backbone", label):
        return False
    conditions = conditions_of(row)
    implied_size = conditions.pop("batch_size", None)
    size = implied_size if pd.isna(row["batch_size"]) else row["batch_size"]
    if size is not None and int(size) != place["batch_size"]:
        return False
    if row["embedding_dim"] and row["embedding_dim"] != str(dim):
        return False
    for key, value in conditions.items():
        if (key, value) == EXPANSION:
            continue
        met = tags & {value, key + value, f"{key}_{value}"}
        if not met and facts.get("conditions", {}).get(key) != value:
            return False
        tags -= met
    return not tags - set(READINGS) - (set() if row.get("score", True) else {TIMING})


def stated_facts(row: Mapping[str, Any]) -> str:
    """Returns the facts of a row that its runs must share, as text."""
    facts = [
        row["backbone"],
        f"embedding dimension {row['embedding_dim']}" if row["embedding_dim"] else "",
        f"batch size {row['batch_size']}" if pd.notna(row["batch_size"]) else "",
        row["condition"].replace(";", ", "),
        row.get("implied", "").replace(";", ", "),
    ]
    return ", ".join(fact for fact in facts if fact) or "no further fact"


def _suffix(variant: str, base: str) -> str:
    """Returns what a variant's label adds to its loss; a label of its own counts as a whole."""
    return variant[len(base) :].lstrip("_") if variant.startswith(base) else variant


def _reading(cell: tuple) -> str | None:
    return next((option for option in cell[1].split("~")[1:] if option in READINGS), None)


def _split(row: Mapping[str, Any], cell: tuple, splits: set[str]) -> str:
    protocol = row["protocol"].removesuffix(SPLIT_SUFFIX)
    expanded = protocol != row["protocol"] or EXPANSION in conditions_of(row).items()
    suffix = SPLIT_SUFFIX if expanded else ""
    if row["dataset"] != cell[0]:
        return f"{row['dataset']}_{protocol}{suffix}"
    return (
        protocol or ("test" if "test" in splits or len(splits) != 1 else next(iter(splits)))
    ) + suffix
