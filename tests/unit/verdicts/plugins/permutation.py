"""A permutation test over seeds, for pairs with at least two seeds on both sides.

Seeds are regrouped in every way, after one side is moved by the margin. It asks both questions of
a verdict, and needs no normal scores.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from benchmark.stats.intervals import holm
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, UNDECIDED
from benchmark.verdicts.pair_tests import TESTS, Found
from benchmark.verdicts.pairs import number
from benchmark.verdicts.verdicts import HIGH, LOW, Reasons

ROUNDING = 1e-9  # of sums in another order


class Permuted(NamedTuple):
    """The p of both questions, and the smallest that so many seeds can give."""

    same: float = math.nan
    above: float = math.nan
    below: float = math.nan
    least: float = math.nan

    @property
    def beyond(self) -> float:
        """The p of a difference beyond the margin, on either side."""
        return float(np.minimum(1.0, 2 * np.minimum(self.above, self.below)))


def larger(first, second) -> float:
    """Return the share of regroupings with at least the difference first - second."""
    both = np.concatenate([first, second])
    chosen = list(itertools.combinations(both, len(first)))
    means = np.mean(chosen, axis=1)
    return float(np.mean(means >= np.mean(first) - ROUNDING))


def permuted(ours, theirs, margin: float) -> Permuted:
    """Return the test of two samples by seed."""
    first = np.array([*ours.values()], float)
    second = np.array([*theirs.values()], float)
    if min(len(first), len(second)) < 2:
        return Permuted()
    not_below = larger(first + margin, second)
    not_above = larger(second + margin, first)
    return Permuted(
        same=max(not_below, not_above),
        above=larger(first, second + margin),
        below=larger(second, first + margin),
        least=1 / math.comb(len(first) + len(second), len(first)),
    )


def sentence(row) -> str:
    pair = row.pair
    found = permuted(pair.ours.by_seed, pair.theirs.by_seed, pair.margin)
    return (
        f"permuted seeds: p = {found.same:.2g} of the same within {row.margin}, "
        f"p = {found.beyond:.2g} of beyond; the smallest is {found.least:.2g}"
    )


class ByPermutation(Reasons):
    SAME = REPRODUCED, sentence
    ABOVE = DRIFTED, sentence, HIGH
    BELOW = DRIFTED, sentence, LOW
    OPEN = UNDECIDED, sentence


@TESTS.register(
    "permutation",
    display="Permutation over seeds",
    columns={
        "p_permutation_same": number("p of the hypothesis that the difference is beyond"),
        "p_permutation_beyond": number("p of the hypothesis that it is inside, after Holm"),
        "p_permutation_least": number("smallest p that so many seeds can give"),
    },
)
def permutation(rows, level: float) -> Found:
    """Return both tests of each pair of a family with seeds on both sides."""
    found = []
    for row in rows.itertuples():
        found.append(permuted(row.ours_by_seed, row.theirs_by_seed, row.margin))
    beyond = holm([each.beyond for each in found], int(rows["planned"].sum()))
    why = []
    for each, p in zip(found, beyond, strict=True):
        reason = None
        if each.same <= level:
            reason = ByPermutation.SAME
        elif p <= level:
            reason = ByPermutation.ABOVE if each.above < each.below else ByPermutation.BELOW
        elif not math.isnan(each.least):
            reason = ByPermutation.OPEN
        why.append(reason)
    columns = {
        "p_permutation_same": [each.same for each in found],
        "p_permutation_beyond": beyond,
        "p_permutation_least": [each.least for each in found],
    }
    return Found(columns, np.array(why, object))
