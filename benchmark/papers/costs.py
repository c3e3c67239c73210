"""What training cost, as claims and printed tables measure it."""

import math
from collections.abc import Mapping

from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.runs.table import RunTable, cell_from

LOSS_TIME, BACKBONE_TIME, EPOCH_TIME = "loss_time", "backbone_time", "minutes_per_epoch"
TRAINING_TIME = "training_time"
TIMES = (LOSS_TIME, BACKBONE_TIME, EPOCH_TIME, TRAINING_TIME)  # that papers print
COUNTS = ("n_forwards", "n_backwards", "n_updates")  # that papers print
Costs = Mapping[tuple[Cell, str], Mapping[int, float]]  # by cell and quantity: seed -> value


def convergence_of(table: RunTable) -> Costs:
    """Return how close a run is to its last R@1 while it trains, on average.

    In percent of the last R@1: the mean over the evaluated epochs before the last one, and over the
    test splits. The sooner a curve rises, the nearer to 100.
    """
    curves = table.test_scores("curve", ["recall_at_1"])
    found: dict[tuple[Cell, str], dict[int, float]] = {}
    for (*columns, seed), run in curves.groupby([*CELL_COLUMNS, "seed"]):
        epochs = run.pivot(index="epoch", columns="split", values="value").sort_index()
        last = epochs.iloc[-1]
        if len(epochs) > 1 and (last > 0).all():
            share = 100 * float((epochs.iloc[:-1] / last).mean().mean())
            found.setdefault((cell_from(columns), "convergence"), {})[int(str(seed))] = share
    return found


def costs_of(table: RunTable) -> Costs:
    """Return the costs of finished runs, printed times in the unit of the print.

    ``backbone_time`` is the mean time of a step less that of its loss: both passes of the network,
    and with them the update and whatever a step waits for its images. Papers print the passes
    alone: ours is a bound.
    """
    costs = table.costs()
    last = table.test_scores("last").groupby("run_id")["epoch"].max()
    epochs = costs["run_id"].map(last).astype(float)  # text where no run has finished
    rate = costs["images_per_second"].where(costs["images_per_second"] > 0)
    per_epoch = costs["train_seconds"] / epochs
    quantities = {
        "train_seconds": costs["train_seconds"],
        "seconds_per_epoch": per_epoch,
        "loss_ms": costs["loss_ms"],
        "peak_gpu_mb": costs["peak_gpu_mb"].where(costs["peak_gpu_mb"] > 0),
        LOSS_TIME: costs["loss_ms"],
        BACKBONE_TIME: 1000.0 * costs["batch_size"] / rate - costs["loss_ms"],
        EPOCH_TIME: per_epoch / 60.0,
        TRAINING_TIME: costs["train_seconds"] / 86400.0,
        "n_forwards": costs["images_forward"] / 1000.0,
        "n_backwards": costs["images_backward"] / 1000.0,
        "n_updates": costs["updates"],
    }
    cells = [cell_from(row) for row in costs[list(CELL_COLUMNS)].itertuples(index=False)]
    found: dict[tuple[Cell, str], dict[int, float]] = {}
    for name, values in quantities.items():
        for cell, seed, value in zip(cells, costs["seed"], values, strict=True):
            if math.isfinite(value):
                found.setdefault((cell, name), {})[int(seed)] = float(value)
    return found
