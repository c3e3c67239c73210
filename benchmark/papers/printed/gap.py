"""The decrease of the decomposability gap, as 'analyse decomposability_gap' left it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.files import guess_csv
from benchmark.core.records import Cell

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
    setting: str = ""


def gap_decreases(folder: Path) -> list[GapDecrease]:
    """Return the decreases below a study's results folder, one a dataset, batch size and seed.

    Quick trials, analyses of another study, files of another schema and files that cannot be read
    are left out.
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
    facts = json.loads(summary.read_bytes())
    study = summary.parents[2].name
    if facts["schema"] != SCHEMA or facts["quick"] or facts.get("study", study) != study:
        return
    ((dataset, setting),) = {tuple(run["run_id"].split("/")[:2]) for run in facts["runs"]}
    means = guess_csv(summary.parent / "figure.csv")
    means = means[(means["kind"] == "gap") & (means["trained_at"] == means["measured_at"])]
    gaps = means.pivot(index=["trained_at", "seed"], columns="loss", values="gap")
    decrease = 100 * (1 - gaps[CALIBRATED] / gaps[PLAIN])
    for batch_size, seed, value in decrease.rename("value").reset_index().itertuples(index=False):
        yield GapDecrease(dataset, int(batch_size), int(seed), float(value), setting)


def relative_gaps(
    gaps: Iterable[GapDecrease], cells: Iterable[Cell]
) -> dict[tuple[Cell, str], dict[int, float]]:
    """Return the gap of a loss by seed, as a multiple of SupAP's, for the cells it is known of."""
    found: dict[tuple[Cell, str], dict[int, float]] = {}
    by_place: dict[tuple[str, str, int], dict[int, float]] = {}
    for each in gaps:
        place = by_place.setdefault((each.dataset, each.setting, each.batch_size), {})
        place[each.seed] = max(1 - each.decrease / 100, 0.001)  # ratios are compared as logarithms
    for cell in cells:
        ratios = by_place.get((cell.dataset, cell.setting.label, cell.batch_size), {})
        if cell.loss == CALIBRATED:
            found[cell, "decomposability_gap"] = ratios
        elif cell.loss == PLAIN:
            found[cell, "decomposability_gap"] = dict.fromkeys(ratios, 1.0)
    return found
