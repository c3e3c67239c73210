"""Printed quantities that are not scores: what training cost, and the decomposability gap."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.files import guess_csv
from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.runs.run_table import RunTable
from benchmark.stats.samples import BySeed

COUNTS = ("n_forwards", "n_backwards", "n_updates")  # that papers print
Costs = Mapping[tuple[Cell, str], BySeed]  # by cell and quantity
# What the analysis of the decomposability gap leaves, and the losses that it compares.
GAP = "gap_decrease"
GAP_FILES = "analyses/decomposability_gap*/summary.json"
PLAIN = "sup_ap"
CALIBRATED = "roadmap"


def convergence_of(table: RunTable) -> Costs:
    """Return how close the R@1 of a run is to its last R@1 while it trains, in percent.

    The value is a mean over the evaluated epochs before the last one, and over the test splits. A
    curve that rises sooner has a value nearer to 100.
    """
    curves = table.test_scores("curve", ["recall_at_1"])
    convergence: dict[tuple[Cell, str], dict[int, float]] = {}
    for (*columns, seed), run in curves.groupby([*CELL_COLUMNS, "seed"]):
        epochs = run.pivot(index="epoch", columns="split", values="value").sort_index()
        last = epochs.iloc[-1]
        if len(epochs) > 1 and (last > 0).all():
            shares = (epochs.iloc[:-1] / last).mean()
            by_seed = convergence.setdefault((Cell.of(columns), "convergence"), {})
            by_seed[int(str(seed))] = 100 * float(shares.mean())
    return convergence


def costs_of(table: RunTable) -> Costs:
    """Return the costs of finished runs. Times that papers print have the unit of the print.

    ``backbone_time`` is the mean time of a step without the time of its loss. It has both passes of
    the network, the update, and the time that a step waits for its images. Papers print the time of
    the passes alone, so our value is an upper bound.
    """
    costs = table.finished()
    last = table.test_scores("last").groupby("run_id")["epoch"].max()
    epochs = costs["run_id"].map(last).astype(float)  # text where no run has finished
    rate = costs["images_per_second"].where(costs["images_per_second"] > 0)
    per_epoch = costs["train_seconds"] / epochs
    quantities = {
        "train_seconds": costs["train_seconds"],
        "seconds_per_epoch": per_epoch,
        "eval_seconds": costs["eval_seconds"],
        "loss_ms": costs["loss_ms"],
        "peak_gpu_mb": costs["peak_gpu_mb"].where(costs["peak_gpu_mb"] > 0),
        "loss_time": costs["loss_ms"],
        "backbone_time": 1000.0 * costs["batch_size"] / rate - costs["loss_ms"],
        "minutes_per_epoch": per_epoch / 60.0,
        "training_time": costs["train_seconds"] / 86400.0,
        "n_forwards": costs["images_forward"] / 1000.0,
        "n_backwards": costs["images_backward"] / 1000.0,
        "n_updates": costs["updates"],
    }
    cells = [Cell.of(row) for row in costs[list(CELL_COLUMNS)].itertuples(index=False)]
    measured: dict[tuple[Cell, str], dict[int, float]] = {}
    for name, values in quantities.items():
        for cell, seed, value in zip(cells, costs["seed"], values, strict=True):
            if math.isfinite(value):
                by_seed = measured.setdefault((cell, name), {})
                by_seed[int(seed)] = float(value)
    return measured


@dataclass(frozen=True)
class GapDecrease:
    """1 - gap of ROADMAP / gap of SupAP in percent, trained and measured at one batch size."""

    dataset: str
    batch_size: int
    seed: int
    decrease: float
    setting: str = ""


def gap_decreases(folder: Path) -> list[GapDecrease]:
    """Return the decreases in a study's results folder: one for each dataset, batch size and seed.

    Quick trials and analyses of another study are left out.
    """
    decreases: dict[tuple[str, int, int], GapDecrease] = {}
    # a dataset that was asked for ("decomposability_gap-cub") goes before the study's first
    for summary in sorted(folder.glob(GAP_FILES)):
        facts = json.loads(summary.read_bytes())
        other_study = facts.get("study", folder.name) != folder.name
        if facts["quick"] or other_study:
            continue
        # the runs share dataset and setting, with which a run_id begins
        dataset, setting, _ = facts["runs"][0]["run_id"].split("/", 2)
        means = guess_csv(summary.parent / "figure.csv")
        same_size = means["trained_at"] == means["measured_at"]
        means = means[(means["kind"] == "gap") & same_size]
        gaps = means.pivot(index=["trained_at", "seed"], columns="loss", values="gap")
        ratios = gaps[CALIBRATED] / gaps[PLAIN]
        percent = (100 * (1 - ratios)).rename("value").reset_index()
        for size, seed, value in percent.itertuples(index=False):
            key = (dataset, int(size), int(seed))
            decreases[key] = GapDecrease(*key, float(value), setting)
    return list(decreases.values())


def relative_gaps(gaps: Iterable[GapDecrease], cells: Iterable[Cell]) -> Costs:
    """Return the gap of a loss by seed, as a multiple of SupAP's gap, for cells with known gaps."""
    ratios: dict[tuple[str, str, int], dict[int, float]] = {}
    for gap in gaps:
        by_seed = ratios.setdefault((gap.dataset, gap.setting, gap.batch_size), {})
        by_seed[gap.seed] = max(1 - gap.decrease / 100, 0.001)  # compared as logarithms
    relative = {}
    for cell in cells:
        by_seed = ratios.get((cell.dataset, cell.setting.label, cell.batch_size), {})
        if cell.loss == CALIBRATED:
            relative[cell, "decomposability_gap"] = by_seed
        elif cell.loss == PLAIN:
            relative[cell, "decomposability_gap"] = dict.fromkeys(by_seed, 1.0)
    return relative
