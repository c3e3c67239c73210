"""From the evidence on all numbers to their verdicts, one table after another.

A table is a family of Holm's correction: its size is the number of tests that the study plans, so
that a result cannot be lost when more runs come in. ``reproduced`` needs no correction: each number
is called on its own evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmark.papers.verdicts.records import Comparison, Verdict
from benchmark.papers.verdicts.words import outcome
from benchmark.stats.families import holm
from benchmark.stats.planning import seeds_to_decide
from benchmark.stats.reproduction import ALPHA, Evidence, compare, element
from benchmark.stats.sensitivity import Mark, marks


def decide(comparisons: Sequence[Comparison], level: float = ALPHA) -> list[Verdict]:
    """Return the verdicts in the order of ``comparisons``, each tested at ``level``."""
    families: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(comparisons):
        families.setdefault(each.family, []).append(index)
    found: dict[int, Verdict] = {}
    for members in families.values():
        table = _table([comparisons[index] for index in members], level)
        found |= dict(zip(members, table, strict=True))
    return [found[index] for index in range(len(comparisons))]


def _table(comparisons: Sequence[Comparison], level: float) -> list[Verdict]:
    """Return the verdicts of one family."""
    planned = sum(each.planned for each in comparisons)
    numbers = evidence(comparisons)
    tests, plain = (compare(each, level) for each in (numbers, evidence(comparisons, plain=True)))
    p_holm = holm(tests.p_drift, planned)
    testable = np.isfinite(tests.p_drift)
    size = max(planned, int(testable.sum()))
    published = np.array([each.reference.number is not None for each in comparisons])
    changed = marks(numbers, published=published, alpha=level, planned=planned)
    verdicts = []
    for at, each in enumerate(comparisons):
        test = tests.at(at) if testable[at] else None
        seeds = None
        if test is not None:
            seeds = seeds_to_decide(element(numbers, at), family=size, alpha=level)
        said = outcome(each, test, float(p_holm[at]), size, seeds, level)
        sensitivity: dict[str, Mark] = {}
        if test is not None and said.tested:
            sensitivity = {name: mark.at(at) for name, mark in changed.items()}
        verdicts.append(
            Verdict(
                each,
                test,
                plain.at(at) if np.isfinite(plain.p_drift[at]) else None,
                sensitivity,
                float(tests.difference[at]),
                float(p_holm[at]),
                size,
                said,
                level,
            )
        )
    return verdicts


def evidence(comparisons: Sequence[Comparison], *, plain: bool = False) -> Evidence:
    """Return the numbers of ``comparisons`` as arrays.

    ``plain`` takes each cell's own spread in place of the one that it shares with its sisters.
    """

    def columns(each: Comparison) -> dict[str, float]:
        spreads = (each.spread, each.reference.spread, each.paired.spread)
        own, theirs, pairs = (spread.plain if plain else spread for spread in spreads)
        reference = each.reference.mean
        return dict(
            ours=reference + each.paired.mean if each.is_paired else each.ours.mean,
            ours_n=each.ours.n or np.nan,
            reference=reference,
            variance=own.sd**2,
            df=own.df,
            reference_n=each.reference.n,
            reference_variance=theirs.sd**2,
            reference_df=theirs.df,
            paired_n=each.paired.n or np.nan,
            paired_variance=pairs.sd**2,
            paired_df=pairs.df,
            identical=each.paired.identical,
            margin=each.margin,
            slack=np.nan_to_num(each.reference.rounding),
        )

    rows = [columns(each) for each in comparisons]
    return Evidence(**{name: np.array([row[name] for row in rows], float) for name in rows[0]})
