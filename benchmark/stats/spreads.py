"""Spreads between runs, shared among sister cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from benchmark.stats.moderation import moderate

Key = TypeVar("Key", bound=Hashable)
ROUNDING = 1e-10  # points: scores that differ by less are equal


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one run, or of one difference by seed, in points.

    own, own_df    of the cell alone; NaN and 0 below two runs, and where all runs are equal
    sd, df         moderated; NaN and 0 where neither the cell nor its sisters have a spread
    lent, lent_df  pooled over the sisters, and the degrees of freedom that they lend
    """

    own: float = np.nan
    own_df: float = 0.0
    sd: float = np.nan
    df: float = 0.0
    lent: float = np.nan
    lent_df: float = 0.0

    @property
    def plain(self) -> Spread:
        """What the cell says of itself, without its sisters."""
        return Spread(self.own, self.own_df, self.own, self.own_df)


UNKNOWN_SPREAD = Spread()


def shared_spreads(
    cells: Mapping[Key, tuple[float, int]], sisters: Callable[[Key], Hashable]
) -> dict[Key, Spread]:
    """Return the spread of each cell, of which standard deviation and number of runs are given.

    Cells are sisters where ``sisters`` returns the same.
    """
    groups: dict[Hashable, list[Key]] = {}
    for key in cells:
        groups.setdefault(sisters(key), []).append(key)
    found: dict[Key, Spread] = {}
    for keys in groups.values():
        sd, n = np.array([cells[key] for key in keys], float).T
        sd = np.where(n >= 2, np.where(sd > ROUNDING, sd, 0.0), np.nan)
        shared = moderate(sd**2, np.maximum(n - 1, 0))
        known = (shared.variance > 0) & (shared.df > 0)
        columns = zip(
            np.where(sd > 0, sd, np.nan),
            np.where(sd > 0, n - 1, 0),
            np.where(known, np.sqrt(np.where(known, shared.variance, 0)), np.nan),
            np.where(known, shared.df, 0),
            np.sqrt(shared.prior_variance),
            shared.prior_df,
            strict=True,
        )
        for key, numbers in zip(keys, columns, strict=True):
            found[key] = Spread(*map(float, numbers))
    return {key: found[key] for key in cells}
