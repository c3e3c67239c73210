"""The decrease of the decomposability gap, as 'analyse decomposability_gap' left it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.core.paths import read_regular
from benchmark.core.plain_json import parse_json

GAP = "gap_decrease"  # the printed quantity
FILES = "analyses/decomposability_gap*/summary.json"
SCHEMA = 1
PLAIN, CALIBRATED = "sup_ap", "roadmap"


@dataclass(frozen=True)
class GapDecrease:
    """1 - gap of ROADMAP / gap of SupAP in percent, trained and measured at one batch size."""

    dataset: str
    batch_size: int
    seed: int
    decrease: float


def gap_decreases(folder: Path) -> list[GapDecrease]:
    """Return the decreases below a study's results folder, one a dataset, batch size and seed.

    Quick trials, files of another schema and files that cannot be read are left out.
    """
    found: dict[tuple[str, int, int], GapDecrease] = {}
    # a dataset that was asked for ("decomposability_gap-cub") goes before the study's first
    for summary in sorted(folder.glob(FILES)):
        try:
            found |= {(each.dataset, each.batch_size, each.seed): each for each in _read(summary)}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
    return list(found.values())


def _read(summary: Path) -> Iterator[GapDecrease]:
    facts = parse_json(read_regular(summary))
    if facts["schema"] != SCHEMA or facts["quick"]:
        return
    (dataset,) = {run["run_id"].partition("/")[0] for run in facts["runs"]}
    means = pd.read_csv(summary.parent / "figure.csv")
    means = means[(means["kind"] == "gap") & (means["trained_at"] == means["measured_at"])]
    gaps = means.pivot(index=["trained_at", "seed"], columns="loss", values="gap")
    decrease = 100 * (1 - gaps[CALIBRATED] / gaps[PLAIN])
    for batch_size, seed, value in decrease.rename("value").reset_index().itertuples(index=False):
        yield GapDecrease(dataset, int(batch_size), int(seed), float(value))
