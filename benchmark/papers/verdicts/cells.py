"""Our side of a verdict: what the long table says about each cell, in percentage points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.stats.intervals import spread
from benchmark.stats.runs import CELL, attempts, scores


@dataclass(frozen=True)
class Side:
    """Of ``n`` finished runs, in percentage points, with the score of each seed; ``facts`` are the distinct versions
    they were made with."""

    mean: float
    sd: float
    n: int
    by_seed: dict[int, float]
    facts: dict[str, tuple[str, ...]]


EMPTY = Side(np.nan, np.nan, 0, {}, {})
VERSIONS = ("spec_digest", "code_version", "platform")


class Cells:
    """Scores by (cell, split, metric) and the statuses of all runs by cell, for one selection rule."""

    def __init__(self, runs: pd.DataFrame, selection: str = "last"):
        self.selection = selection
        tried = attempts(runs)
        statuses = tried.groupby([*CELL, "status"]).size()
        self.statuses: dict[tuple, dict[str, int]] = {}
        for key, count in statuses.items():
            self.statuses.setdefault(key[:-1], {})[key[-1]] = int(count)
        self.sides: dict[tuple, Side] = {}
        self.splits: dict[tuple, set[str]] = {}
        for key, group in scores(runs, selection).groupby([*CELL, "split", "metric"]):
            cell, split = key[: len(CELL)], key[-2]
            self.sides[key] = side(group)
            self.splits.setdefault(cell, set()).add(split)
        self._pools = pools(self.sides)

    @property
    def all(self) -> list[tuple]:
        """Returns every cell that some run belongs to, finished or not."""
        return list(self.statuses)

    def side(self, cell: tuple, split: str, metric: str) -> Side:
        """Returns our side of one number; ``EMPTY`` when no finished run has it."""
        return self.sides.get((*cell, split, metric), EMPTY)

    def pooled(self, cell: tuple, split: str, metric: str) -> tuple[float, float]:
        """Returns (spread, degrees of freedom) pooled over the cells of one dataset, setting, split and metric."""
        return self._pools.get((cell[0], cell[1], split, metric), (np.nan, np.nan))


def side(rows: pd.DataFrame) -> Side:
    """Returns mean, spread and number of the scores in ``rows`` (one row per run), scaled to percentage points."""
    values = 100 * rows["value"].to_numpy(float)
    facts = {name: tuple(sorted(set(rows[name].astype(str)))) for name in VERSIONS}
    sd = spread(values) if len(values) > 1 else np.nan
    return Side(
        float(values.mean()),
        sd,
        len(values),
        dict(zip(rows["seed"].tolist(), values, strict=True)),
        facts,
    )


def pools(sides: dict[tuple, Side]) -> dict[tuple, tuple[float, float]]:
    """Returns spreads pooled over the losses and batch sizes of each (dataset, setting, split, metric).

    It assumes that those cells share one spread, and serves cells that have none of their own.
    """
    sums: dict[tuple, list[float]] = {}
    for key, found in sides.items():
        if found.n >= 2:
            total = sums.setdefault((key[0], key[1], key[-2], key[-1]), [0.0, 0.0])
            total[0] += (found.n - 1) * found.sd**2
            total[1] += found.n - 1
    return {key: (float(np.sqrt(squares / df)), df) for key, (squares, df) in sums.items()}
