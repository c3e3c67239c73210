"""Choose how many seeds of each cell to run, so that most is gained within given hours.

The choice is an integer program. For each cell and each number of seeds, a variable says whether
the cell gets so many. What needs several cells is gained only if all of them get the seeds: the
product of their variables is one further variable, which lies below each of them.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from benchmark.stats.intervals import Floats

GAP = 1e-4  # of the optimum: a choice so near to it is good enough
FRUGAL = 1e-6  # gain that an hour has to bring


class SeedChoice(NamedTuple):
    """``levels`` has a number for each cell, 0: not run. ``bound``: nothing gains more."""

    levels: list[int]
    gain: float
    bound: float


def choose(
    costs: Mapping[Any, Floats],
    gains: Mapping[frozenset[Any], Floats],
    hours: float,
    seconds: float,
) -> SeedChoice:
    """Return the choice of the largest gain within ``hours``, found in ``seconds`` at most.

    costs  hours of each cell up to each of L levels (L,); infinite: it cannot have so many seeds
    gains  gain (L,) if all these cells have at least that level
    """
    prices = np.minimum([*costs.values()], hours + 1)
    rising = np.maximum.accumulate([*gains.values()], axis=1)
    gain_at = np.concatenate([np.zeros_like(prices), rising])
    value = np.diff(gain_at, prepend=0.0)
    spent = np.zeros_like(value)
    spent[: len(costs)] = np.diff(prices, prepend=0.0)
    number = np.arange(value.size).reshape(value.shape)
    row: dict[Any, Any] = dict(zip(costs, number, strict=False))
    above: list[Any] = [number[: len(costs), 1:].ravel()]
    below: list[Any] = [number[: len(costs), :-1].ravel()]
    for group, variables in zip(gains, number[len(costs) :], strict=True):
        above += [variables] * len(group)
        below += [row[cell] for cell in group]
    each = sparse.eye_array(value.size, format="csr")
    ordered = each[np.concatenate(above)] - each[np.concatenate(below)]
    with _silent():
        found: Any = optimize.milp(
            (FRUGAL * spent - value).ravel(),
            integrality=(number < prices.size).astype(int).ravel(),
            bounds=optimize.Bounds(0, 1),
            constraints=[
                optimize.LinearConstraint(ordered, ub=0),
                optimize.LinearConstraint(spent.reshape(1, -1), ub=hours),
            ],
            options={"time_limit": seconds, "mip_rel_gap": GAP, "presolve": False},
        )
    taken = np.round(found.x).reshape(value.shape)  # products of whole numbers are whole
    gain = float((taken * value).sum())
    levels = taken[: len(costs)].sum(axis=1).astype(int)
    return SeedChoice(levels.tolist(), gain, max(gain, -found.mip_dual_bound))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what HiGHS prints by itself, a line of its own search, from standard output."""
    kept = os.dup(1)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
