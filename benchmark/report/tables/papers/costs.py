"""Printed times as our runs measured them: milliseconds of the loss and of the rest of a step, minutes of an epoch."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from benchmark.stats.runs import CELL

LOSS, BACKBONE, EPOCH = "loss_time", "backbone_time", "minutes_per_epoch"
COSTS = (LOSS, BACKBONE, EPOCH)


class Costs:
    """The costs in a long table, looked up by cell and printed quantity."""

    def __init__(self, runs: pd.DataFrame):
        self._runs = runs

    def of(self, cell: tuple, quantity: str) -> np.ndarray:
        """Returns (n,) float64, one value per finished run of ``cell`` that measured ``quantity``, in its unit.

        ``backbone_time`` is the mean time of a step less that of its loss: both passes of the network, and with them
        the update and whatever a step waits for its images. The print counts the passes alone: ours is a bound on it.
        """
        if quantity == LOSS:
            found = self._by_run(cell, "loss_ms")
        elif quantity == BACKBONE:
            size = cell[CELL.index("batch_size")]
            rate = self._by_run(cell, "images_per_second")
            found = 1000.0 * size / rate.where(rate > 0) - self._by_run(cell, "loss_ms")
        else:
            seconds = self._by_run(cell, "train_seconds")
            found = seconds / 60.0 / seconds.index.map(self._epochs)
        values = found.to_numpy(float)
        return values[np.isfinite(values)]

    def _by_run(self, cell: tuple, metric: str) -> pd.Series:
        """Returns one cost of each run of a cell, by run_id."""
        rows = self._costs.get((*cell, metric))
        if rows is None:
            return pd.Series(dtype=float)
        return pd.Series(rows["value"].to_numpy(float), index=rows["run_id"].astype(str))

    @functools.cached_property
    def _costs(self) -> dict[tuple, pd.DataFrame]:
        costs = self._runs[(self._runs["selection"] == "cost") & (self._runs["status"] == "ok")]
        return dict(iter(costs.groupby([*CELL, "metric"], observed=True)))

    @functools.cached_property
    def _epochs(self) -> pd.Series:
        """Returns the number of epochs of each run; rows of costs do not say it."""
        last = self._runs[self._runs["selection"] == "last"]
        return last.groupby(last["run_id"].astype(str))["epoch"].max()
