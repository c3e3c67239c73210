"""What runs are expected to decide before they are made: numbers, claims and comparisons.

Decided is what gets the right verdict. A number is reproduced within the margin and drifted beyond
it, a sentence is supported if it is true and contradicted if not, and a difference between losses
is significant. Nothing is right on the edge of a sentence, such as "A beats B" where they are
equal.

A true difference lies between ours and the printed number; between the parts of a claim and the
edge, or the middle, of what it says; between two losses. Runs spread as much as a paper prints at
most for dataset and metric, else by ``ASSUMED_SPREAD``.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from benchmark.claims.claim_tests import Measurements
from benchmark.claims.claim_verdicts import parts_under
from benchmark.core.records import Cell
from benchmark.core.seeding import derive
from benchmark.stats.planning import Design, chance_to_decide
from benchmark.stats.samples import Sample, Samples
from benchmark.study import Study
from benchmark.verdicts.forecast import ASSUMED_SPREAD, designs, printed_spreads
from benchmark.verdicts.matching import StudyGrid

DRAWN = 400  # runs of a cell that show the spread of a part
LEVEL = 50.0  # points: scores are drawn around it; relative gains alone depend on it
CERTAIN = 10**9  # runs behind a value without an error of its own


class Item(NamedTuple):
    """A number, claim or comparison, which needs runs of all its ``cells``.

    designs  of its parts; a number and a comparison are one part
    spare    parts that need not hold
    """

    kind: str
    cells: frozenset[Cell]
    designs: tuple[Design, ...]
    spare: int = 0

    def chance(self, seeds: int, difference: float) -> float:
        """Return the probability of the right verdict; parts count as independent."""
        margin = self.designs[0].margin
        is_true = abs(difference) < margin or difference > margin == 0
        parts = len(self.designs)
        needed = parts - self.spare if is_true else self.spare + 1
        right: list[Any] = []  # probabilities of 0 and of 1 right parts
        for design in self.designs:
            family = 1 if is_true else design.family  # Holm corrects what speaks against
            chance = chance_to_decide(replace(design, seeds=seeds, family=family), difference)
            right.append([1 - chance, chance])
        return float(sum(reduce(np.convolve, right)[needed:]))


def items_of(study: Study) -> list[Item]:
    """Return the numbers and claims that the runs of a study decide, or else its comparisons."""
    grid = StudyGrid.of(study)
    items = [*_numbers(grid), *_claims(grid)]
    return items or list(_comparisons(grid))


def _numbers(grid: StudyGrid) -> Iterator[Item]:
    for design, cells in designs(grid).values():
        if math.isnan(design.spread):
            design = replace(design, spread=ASSUMED_SPREAD)
        for cell in cells:
            yield Item("numbers", frozenset([cell]), (design,))


class _Draws(Samples):
    """Drawn scores of all cells of a study; ``asked`` are the cells whose scores were needed."""

    def __init__(self, grid: StudyGrid):
        self.statuses = {cell: Counter(ok=DRAWN) for cell in grid.candidates}
        self.splits = {}
        self.spreads = printed_spreads()
        self.asked: set[Cell] = set()

    def sample(self, cell: Cell, split: str, metric: str) -> Sample:
        """Return the scores of a cell."""
        self.asked.add(cell)
        rng = np.random.default_rng(derive(0, "expected", cell.label, split, metric))
        spread = self.spreads.get((cell.dataset, metric), ASSUMED_SPREAD)
        return Sample(dict(enumerate(rng.normal(LEVEL, spread, DRAWN))), {})


def _claims(grid: StudyGrid) -> Iterator[Item]:
    """Yield the claims of papers about scores of which the study has every run, as published."""
    draws = _Draws(grid)
    measurements = Measurements(grid, draws, {})
    for claim in grid.papers.claims(""):
        draws.asked = set()
        conditions = () if claim.outside else measurements.published(claim)
        parts = parts_under(conditions, claim, measurements)
        sisters = Counter(part.sisters for part in parts)
        tests = []
        for part in parts:
            margin = 0.0 if math.isinf(part.high) else (part.high - part.low) / 2
            spread = np.std(part.values) if len(part.values) else math.nan
            tests.append(
                Design(
                    seeds=0,
                    spread=float(spread),
                    family=len(parts),
                    sisters=sisters[part.sisters] - 1,
                    reference_runs=CERTAIN,
                    margin=margin,
                    alpha=claim.alpha,
                )
            )
        needed, total = claim.enough or (0, 0)
        known = [design for design in tests if not math.isnan(design.spread)]
        if known and known == tests:
            cells = frozenset(draws.asked)
            yield Item("claims", cells, tuple(tests), total - needed)


def _comparisons(grid: StudyGrid) -> Iterator[Item]:
    """Yield each loss against the baseline, on the first metric of the study."""
    families = defaultdict(list)
    for base, cell in itertools.permutations(grid.candidates, 2):
        beside = replace(cell, loss=base.loss, base_loss=base.base_loss)
        if base.loss == grid.study.comparison.baseline and base == beside:
            pair = frozenset([base, cell])
            families[base.dataset].append(pair)
    for pairs in families.values():
        design = Design(
            seeds=0,
            spread=math.sqrt(2) * ASSUMED_SPREAD,
            sisters=len(pairs) - 1,
            reference_runs=CERTAIN,
            margin=0.0,
            alpha=grid.study.comparison.alpha / 2 / len(pairs),
        )
        for pair in pairs:
            yield Item("comparisons", pair, (design,))
