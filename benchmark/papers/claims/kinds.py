"""What the kinds of claims test: each turns a claim under one condition into parts.

Everything is paired by seed: a contrast, slope or ratio is computed within a seed, and the seeds
are the sample. Batch sizes enter as their logarithm to base 2, so that slopes are per doubling.

| kind | one part per | number of a seed | agrees with the sentence |
|---|---|---|---|
| beats | first x second x batch size | first - second, points | above ``by`` (0) |
| monotone | step of the size; whole | difference of neighbours; slope | above -margin; above 0 |
| best_at | other level | best - other, points | above 0; above -margin if ``near`` the best |
| insensitive | pair of levels | difference, points | inside +-margin |
| grows, shrinks | first x second | slope of 100 (first - second) / second | above 0, below 0 |
| gains_most | first x second x size x other dataset | gain - gain on the other, points | above 0 |
| cost_ratio | first x second x batch size | log of first / second | inside ``between`` |
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmark.metrics.names import display_name
from benchmark.papers.claims.measurements import Condition, Measured, Measurements
from benchmark.papers.claims.model import Arm, Claim
from benchmark.papers.claims.parts import RATIO, Part
from benchmark.papers.margins import load_margins, margin_of
from benchmark.stats.divergence import diverges


@dataclass(frozen=True)
class Question:
    """A claim under one condition and metric, and where its values come from."""

    claim: Claim
    source: Measurements
    condition: Condition
    metric: str

    @property
    def margin(self) -> float:
        """The points that are of no consequence."""
        own = self.claim.margin
        margin = margin_of(self.metric, load_margins()) if own is None else own
        return math.nan if margin is None else margin

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The batch sizes to ask at."""
        return self.condition.sizes(self.claim.arms)

    @property
    def contrasts(self) -> Iterator[tuple[int | None, Arm, Arm]]:
        """Every batch size with every pair of first and second arm."""
        return itertools.product(self.sizes, self.claim.first, self.claim.second)

    def where(self, size: int | None = None) -> str:
        """Return dataset, protocol, backbone, batch size and metric for a reader."""
        condition = self.condition
        protocol = condition.protocol if condition.protocol != "test" else ""
        batch = f"batch {size}" if size else ""
        name = display_name(self.metric).replace("_", " ")
        words = (condition.dataset, protocol, condition.backbone, batch, name)
        return " ".join(filter(None, words))

    def measured(self, arm: Arm, size: int | None) -> Measured:
        """Return the values of one arm at one batch size."""
        return self.source.find(arm, self.condition, size, self.metric)

    def difference(
        self, first: Arm, second: Arm, size: int | None, low: float, high: float = np.inf
    ) -> Part:
        """Return the part of first - second, said to lie between ``low`` and ``high``."""
        ours, theirs = self.measured(first, size), self.measured(second, size)
        if theirs.printed is not None:
            theirs = replace(theirs, by_seed=dict.fromkeys(ours.by_seed, theirs.printed))
        label = f"{self.where(size)}: {first.name} - {second.name}"
        if ours.source is not None and ours.source == theirs.source:
            return Part(label, note="both sides are the same runs here")
        lost = [diverges(*each.diverged) for each in (ours, theirs)]
        if any(lost) and not all(lost):
            counts = [f"{gone} of {runs}" for gone, runs in (ours.diverged, theirs.diverged)]
            note = f"{counts[0]} runs diverged on the first side, {counts[1]} on the second"
            return Part(label, low=low, high=high, note=note, wins=lost[1] and high == np.inf)
        values = common([ours.by_seed, theirs.by_seed])
        note, sisters = ours.note or theirs.note, f"difference {self.where()}"
        return Part(label, values[0] - values[1], low, high, note=note, sisters=sisters)

    def by_size(self, arm: Arm) -> tuple[dict[int, Mapping[int, float]], list[Part]]:
        """Return an arm's values by batch size, and a part without values for each missing size."""
        sizes = [size for size in self.condition.sizes((arm,)) if size is not None]
        measured = {size: self.measured(arm, size) for size in sizes}
        missing = [
            Part(self.where(size), note=each.note)
            for size, each in measured.items()
            if not each.by_seed
        ]
        return {size: each.by_seed for size, each in measured.items() if each.by_seed}, missing


def beats(asked: Question) -> list[Part]:
    """First better than second at every batch size, by more than ``by`` points."""
    by = asked.claim.by
    return [asked.difference(first, second, size, by) for size, first, second in asked.contrasts]


def monotone(asked: Question) -> list[Part]:
    """Rising with the batch size: the slope is above 0, and no step is a fall beyond the margin."""
    parts = []
    for arm in asked.claim.first:
        by_size, missing = asked.by_size(arm)
        parts += missing
        for smaller, larger in itertools.pairwise(by_size):
            values = common([by_size[larger], by_size[smaller]])
            label = f"{asked.where()}: {arm.name} batch {larger} - {smaller}"
            sisters = f"difference {asked.where()}"
            parts.append(Part(label, values[0] - values[1], -asked.margin, sisters=sisters))
        parts.append(_slope(f"{asked.where()}: {arm.name} per doubling", by_size))
    return parts


def best_at(asked: Question) -> list[Part]:
    """One level beats every other; those ``near`` it may be as good, within the margin."""
    levels, near = asked.claim.level_arms, {str(level) for level in asked.claim.near}
    best = levels[str(asked.claim.best)]
    return [
        asked.difference(best, arm, size, -asked.margin if level in near else 0.0)
        for size in asked.sizes
        for level, arm in levels.items()
        if arm is not best
    ]


def insensitive(asked: Question) -> list[Part]:
    """The level does not matter: every pair is equivalent within the margin."""
    pairs = itertools.combinations(asked.claim.level_arms.values(), 2)
    return [
        asked.difference(*pair, size, -asked.margin, asked.margin)
        for size, pair in itertools.product(asked.sizes, pairs)
    ]


def grows(asked: Question, sign: int = 1) -> list[Part]:
    """The relative gain of first over second grows with the batch size: its slope is above 0."""
    parts: list[Part] = []
    step = "doubling" if sign > 0 else "halving"
    for first, second in itertools.product(asked.claim.first, asked.claim.second):
        ours, missing = asked.by_size(first)
        theirs, also_missing = asked.by_size(second)
        parts += {part.label: part for part in (*missing, *also_missing)}.values()
        gains = {
            size: {
                seed: sign * 100 * (value / theirs[size][seed] - 1)
                for seed, value in by_seed.items()
                if theirs[size].get(seed, 0) > 0
            }
            for size, by_seed in ours.items()
            if size in theirs
        }
        label = f"{asked.where()}: gain of {first.name} over {second.name} per {step}"
        parts.append(_slope(label, gains, unit="% of gain"))
    return parts


def shrinks(asked: Question) -> list[Part]:
    """The relative gain of first over second grows as the batch gets smaller."""
    return grows(asked, sign=-1)


def gains_most(asked: Question) -> list[Part]:
    """First gains more over second on the first dataset of the claim than on each of the others."""
    datasets = [name for scope in asked.claim.published for name in scope.datasets]
    if asked.condition.dataset != datasets[0]:
        return []
    parts = []
    for size, first, second in asked.contrasts:
        for other in datasets[1:]:
            there = replace(asked, condition=replace(asked.condition, dataset=other))
            found = [each.measured(arm, size) for each in (asked, there) for arm in (first, second)]
            values = common([each.by_seed for each in found])
            label = f"{asked.where(size)}: {first.name} - {second.name}, less that on {other}"
            note = next((each.note for each in found if each.note), "")
            gains = values[0] - values[1] - (values[2] - values[3])
            parts.append(Part(label, gains, note=note, sisters=f"gain {asked.where()}"))
    return parts


def cost_ratio(asked: Question) -> list[Part]:
    """First costs so many times what second costs: the ratio lies in ``between``."""
    low, high = (*map(np.log, asked.claim.between), np.inf)[:2]
    parts = []
    for size, first, second in asked.contrasts:
        ours, theirs = asked.measured(first, size), asked.measured(second, size)
        label = f"{asked.where(size)}: {first.name} / {second.name}"
        costs = np.log(common([ours.by_seed, theirs.by_seed]))
        note = ours.note or theirs.note
        sisters = f"ratio {asked.where()}"
        parts.append(Part(label, costs[0] - costs[1], low, high, RATIO, note, sisters))
    return parts


KINDS: Mapping[str, Callable[[Question], list[Part]]] = {
    kind.__name__: kind
    for kind in (beats, monotone, best_at, insensitive, grows, shrinks, gains_most, cost_ratio)
}


def parts_of(claim: Claim, source: Measurements, condition: Condition) -> list[Part]:
    """Return the parts of a claim under one condition."""
    questions = (Question(claim, source, condition, metric) for metric in claim.metrics)
    return [part for question in questions for part in KINDS[claim.kind](question)]


def common(by_seed: Sequence[Mapping[int, float]]) -> NDArray[np.float64]:
    """Return the values over the seeds that all have in common, (len(by_seed), seeds)."""
    seeds = sorted(set.intersection(*(set(each) for each in by_seed)))
    return np.array([[each[seed] for seed in seeds] for each in by_seed], dtype=float)


def _slope(label: str, by_size: Mapping[int, Mapping[int, float]], unit: str = "points") -> Part:
    """Return the part of least-squares slopes over log2 of the batch size, one per seed."""
    if len(by_size) < 2:
        return Part(label, unit=unit, note="needs runs at 2 batch sizes or more")
    values, x = common(list(by_size.values())), np.log2(list(by_size))
    x -= x.mean()
    return Part(label, (x @ values) / (x @ x), unit=unit)
