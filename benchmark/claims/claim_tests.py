"""What the kinds of claims test: each kind turns a claim under one condition into parts.

All values are paired by seed: a contrast, slope or ratio is computed within a seed, and the seeds
are the sample. Batch sizes enter as their logarithm to base 2, so that slopes are per doubling.

| kind | one part per | number of a seed | agrees with the sentence |
|---|---|---|---|
| beats | first x second x batch size | first - second, points | above ``by`` (0) |
| differs_by | first x second x batch size | first - second, points | inside ``by`` +- margin |
| monotone | step of the size; whole | difference of neighbours; slope | above -margin; above 0 |
| best_at | other level | best - other, points | above 0; above -margin if ``near`` the best |
| insensitive | pair of levels | difference, points | inside +-margin |
| grows, shrinks | first x second | slope of 100 (first - second) / second | above 0, below 0 |
| gains_most | first x second x size x other dataset | gain - gain on the other, points | above 0 |
| cost_ratio | first x second x batch size | log of first / second | inside ``between`` |
| costs | first x batch size | cost of first | inside ``between`` |

Counts (updates, passes) are equal for all seeds, so no test is needed: a count lies inside or not.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from benchmark.core.records import Cell
from benchmark.metrics.metric import display_name
from benchmark.metrics.search import SPLIT_SUFFIX
from benchmark.published.quantities import COUNTS, Costs
from benchmark.published.schema import COST_METRICS, PRINTED, Arm, Claim, printed_numbers
from benchmark.published.vocabulary import load_vocabulary, margin_of
from benchmark.stats.intervals import Floats, diverges
from benchmark.stats.reproduction import range_test
from benchmark.stats.samples import BySeed, Samples, Spread
from benchmark.verdicts.matching import Candidate, Stated, StudyGrid, match

RATIO = "times"  # unit of parts whose values are logarithms of a ratio
LOGARITHMS = ("estimate", "ci_low", "ci_high", "low", "high")  # fields of such parts


@dataclass(frozen=True)
class ClaimPart:
    """One comparison, reduced to one number per seed, and the range that should contain its mean.

    values   one per seed; empty if runs are missing, and ``note`` says why
    low      the sentence says that the mean lies between ``low`` and ``high``
    sisters  parts of one claim with the same word share a spread; "" shares with no part
    wins     True or False if divergence decides without a test

    ``tested`` fills the other fields, for a row of ``claims_parts.csv``. Ratios are then plain
    numbers and not logarithms.
    ci_low     with ci_high: the interval of confidence 1 - 2 alpha
    p          of the test that the mean lies between low and high (NaN: open)
    p_against  of the test that the mean lies outside, before Holm
    """

    part: str
    values: Floats = field(default_factory=lambda: np.empty(0))
    low: float = 0.0
    high: float = np.inf
    unit: str = "points"
    note: str = ""
    sisters: str = ""
    wins: bool | None = None
    n: int = 0
    estimate: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    p: float = np.nan
    p_against: float = np.nan

    def tested(self, alpha: float, shared: Spread) -> "ClaimPart":
        """Return the part with its test at level ``alpha``. The spread may be shared."""
        test = range_test(self.values, self.low, self.high, alpha, shared)
        high = self.high if np.isfinite(self.high) else np.nan
        note = self.note
        if not note and not self.is_run:
            note = "no common seed"
        tested = replace(self, **test._asdict(), high=high, note=note)
        if self.unit != RATIO:
            return tested
        ratios = {name: np.exp(getattr(tested, name)) for name in LOGARITHMS}
        return replace(tested, **ratios)

    @property
    def is_run(self) -> bool:
        """Whether there are values, or divergence decides."""
        return len(self.values) > 0 or self.wins is not None

    @property
    def p_fails(self) -> float:
        """The p of the test that the part holds; NaN without a test."""
        return self.p if self.wins is None else float(not self.wins)

    @property
    def p_opposite(self) -> float:
        """The p of the test that the opposite of the part holds, before Holm."""
        return self.p_against if self.wins is None else float(self.wins)

    @property
    def text(self) -> str:
        """The tested part for a reader: comparison, estimate, interval, n."""
        if self.wins is not None:
            return f"{self.part}: {self.note}"
        sign = "" if self.unit == RATIO else "+"
        interval = ""
        if np.isfinite(self.ci_low):
            interval = f" [{self.ci_low:{sign}.2f}, {self.ci_high:{sign}.2f}]"
        return f"{self.part} {self.estimate:{sign}.2f}{interval} {self.unit}, n {self.n}"


@dataclass(frozen=True)
class ClaimCondition:
    """A dataset, protocol and backbone ("": open), and the batch sizes of a claim under them."""

    dataset: str
    protocol: str = ""
    backbone: str = ""
    batch_sizes: tuple[int, ...] = ()

    def sizes(self, arms: Sequence[Arm]) -> tuple[int | None, ...]:
        """Return the batch sizes to go through; (None,) if every arm with runs states its own."""
        stated = all(arm.batch_size or PRINTED in arm.where for arm in arms)
        return (None,) if stated else self.batch_sizes


@dataclass(frozen=True)
class Measured:
    """The values of an arm by seed, scores in percent. ``note`` says why there are no values.

    source    cell and split
    diverged  number of runs that diverged, and of all runs that ended
    printed   the printed number in place of runs
    """

    by_seed: BySeed = field(default_factory=dict)
    note: str = ""
    source: tuple[Cell, str] | None = None
    diverged: tuple[int, int] = (0, 0)
    printed: float | None = None


class Measurements:
    """The scores at one rule's epochs and the costs of a study, found by arm and condition."""

    def __init__(self, grid: StudyGrid, samples: Samples, costs: Costs):
        self._papers = grid.papers
        self._samples = samples
        self._costs = costs
        self._by_dataset: dict[str, list[Candidate]] = defaultdict(list)
        for cell, candidate in grid.candidates.items():
            if cell in self._samples.statuses:
                self._by_dataset[cell.dataset].append(candidate)

    def find(
        self, arm: Arm, condition: ClaimCondition, batch_size: int | None, metric: str
    ) -> Measured:
        """Return the values of the runs that belong to ``arm``, or the number printed for it."""
        if PRINTED in arm.where:
            table = str(arm.where[PRINTED])
            place = (condition.dataset, condition.protocol)
            rows = printed_numbers(arm, *place, metric, self._papers.table(table))
            if not rows:
                cited = self._papers.cite(*table.split("/"))
                return Measured(note=f"{cited} prints no {metric} of {arm.loss} here")
            return Measured(printed=rows[0].points)
        cells = self._by_dataset[condition.dataset]
        for requirements in ((*arm.required, *arm.preferred), arm.required):
            stated = Stated(
                condition.dataset,
                arm.loss,
                condition.protocol,
                arm.backbone or condition.backbone,
                arm.batch_size or batch_size,
                requirements,
                load_vocabulary().free(metric),
            )
            matched = match(stated, cells, self._samples.splits)
            if matched.candidate:
                break
        if matched.candidate is None:
            return Measured(note=matched.reason)
        cell = matched.candidate.cell
        note = ""
        statuses = self._samples.statuses[cell]
        diverged = statuses.get("diverged", 0)
        ok = statuses.get("ok", 0)
        values = self._samples.sample(cell, matched.split, metric).by_seed
        if metric in COST_METRICS:
            values = self._costs.get((cell, metric), {})
        if not values and ok:
            note = f"the runs of {cell.loss} have no {metric}"
        elif not values:
            counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
            note = f"no finished run of {cell.loss} ({counts})"
        return Measured(values, note, (cell, matched.split), (diverged, diverged + ok))

    def published(self, claim: Claim) -> list[ClaimCondition]:
        """Return the conditions of the paper. Open batch sizes are the batch sizes of the runs."""
        conditions = []
        for scope in claim.published:
            for dataset in scope.datasets:
                sizes = tuple(sorted(scope.batch_sizes))
                sizes = sizes or self._sizes(dataset, scope.backbone, claim)
                conditions.append(ClaimCondition(dataset, scope.protocol, scope.backbone, sizes))
        return conditions

    def here(self, claim: Claim, *, every_size: bool, anywhere: bool) -> list[ClaimCondition]:
        """Return the conditions of the study under which it can answer for the paper.

        A condition matches if its dataset, protocol and backbone are among those of the paper. A
        value that the paper or the study leaves open matches every value. With ``anywhere`` these
        three are not compared. The batch sizes are the paper's that were run. If none of them was
        run, or with ``every_size``, the batch sizes are all that were run. Each backbone is a
        condition, unless the claim compares backbones. Expanded queries are an arm of a claim and
        not a condition. Costs do not depend on the protocol: each run has one condition.
        """
        stated = {size for scope in claim.published for size in scope.batch_sizes}
        arms_name_backbones = any(arm.backbone for arm in claim.arms)
        splits_asked = 1 if set(claim.metrics) <= set(COST_METRICS) else None
        matching: dict[tuple[str, str, str], None] = {}
        candidates = itertools.chain.from_iterable(self._by_dataset.values())
        for candidate in candidates:
            dataset = candidate.cell.dataset
            backbone = "" if arms_name_backbones else candidate.backbone
            splits = self._samples.splits.get(candidate.cell, set())
            plain = sorted(split for split in splits if not split.endswith(SPLIT_SUFFIX))
            for split in plain[:splits_asked]:
                if anywhere or any(
                    dataset in scope.datasets
                    and scope.protocol in ("", split)
                    and (scope.backbone in ("", backbone) or not backbone)
                    for scope in claim.published
                ):
                    matching[dataset, split, backbone] = None
        conditions = []
        for dataset, split, backbone in matching:
            run = self._sizes(dataset, backbone, claim)
            kept = tuple(size for size in run if size in stated and not every_size)
            conditions.append(ClaimCondition(dataset, split, backbone, kept or run))
        return conditions

    def _sizes(self, dataset: str, backbone: str, claim: Claim) -> tuple[int, ...]:
        """Return all batch sizes at which the claim's losses were run under a condition."""
        losses = {arm.loss for arm in claim.arms}
        sizes = set()
        for candidate in self._by_dataset[dataset]:
            cell = candidate.cell
            if cell.base_loss in losses and backbone in ("", candidate.backbone):
                sizes.add(cell.batch_size)
        return tuple(sorted(sizes))


@dataclass(frozen=True)
class ClaimQuestion:
    """A claim under one condition and metric, and where its values come from."""

    claim: Claim
    measurements: Measurements
    condition: ClaimCondition
    metric: str

    @property
    def margin(self) -> float:
        """The points that are of no consequence."""
        return self.claim.margin or margin_of(self.metric)

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
        return self.measurements.find(arm, self.condition, size, self.metric)

    def difference(
        self, first: Arm, second: Arm, size: int | None, low: float, high: float = np.inf
    ) -> ClaimPart:
        """Return the part of first - second, said to lie between ``low`` and ``high``."""
        ours = self.measured(first, size)
        theirs = self.measured(second, size)
        if theirs.printed is not None:
            theirs = replace(theirs, by_seed=dict.fromkeys(ours.by_seed, theirs.printed))
        label = f"{self.where(size)}: {first.name} - {second.name}"
        if ours.source is not None and ours.source == theirs.source:
            return ClaimPart(label, note="both sides are the same runs here")
        first_diverges = diverges(*ours.diverged)
        second_diverges = diverges(*theirs.diverged)
        if first_diverges != second_diverges:
            note = (
                f"{ours.diverged[0]} of {ours.diverged[1]} runs diverged on the first side, "
                f"{theirs.diverged[0]} of {theirs.diverged[1]} on the second"
            )
            wins = second_diverges and high == np.inf
            return ClaimPart(label, low=low, high=high, note=note, wins=wins)
        first_values, second_values = _common([ours.by_seed, theirs.by_seed])
        return ClaimPart(
            label,
            first_values - second_values,
            low,
            high,
            note=ours.note or theirs.note,
            sisters=f"difference {self.where()}",
        )

    def by_size(self, arm: Arm) -> tuple[dict[int, BySeed], list[ClaimPart]]:
        """Return an arm's values by batch size, and a part without values for each missing size."""
        by_size: dict[int, BySeed] = {}
        missing = []
        for size in self.condition.sizes((arm,)):
            if size is None:
                continue
            measured = self.measured(arm, size)
            if measured.by_seed:
                by_size[size] = measured.by_seed
            else:
                missing.append(ClaimPart(self.where(size), note=measured.note))
        return by_size, missing


def beats(question: ClaimQuestion) -> list[ClaimPart]:
    """First better than second at every batch size, by more than ``by`` points."""
    by = question.claim.by
    return [
        question.difference(first, second, size, by) for size, first, second in question.contrasts
    ]


def differs_by(question: ClaimQuestion) -> list[ClaimPart]:
    """First better than second by so many points, give or take the margin; 0: on par."""
    low = question.claim.by - question.margin
    high = question.claim.by + question.margin
    return [
        question.difference(first, second, size, low, high)
        for size, first, second in question.contrasts
    ]


def monotone(question: ClaimQuestion) -> list[ClaimPart]:
    """Rising with the batch size: the slope is above 0, and no step is a fall beyond the margin."""
    parts = []
    sisters = f"difference {question.where()}"
    for arm in question.claim.first:
        by_size, missing = question.by_size(arm)
        parts += missing
        for smaller, larger in itertools.pairwise(by_size):
            higher, lower = _common([by_size[larger], by_size[smaller]])
            label = f"{question.where()}: {arm.name} batch {larger} - {smaller}"
            parts.append(ClaimPart(label, higher - lower, -question.margin, sisters=sisters))
        parts.append(_slope(f"{question.where()}: {arm.name} per doubling", by_size))
    return parts


def best_at(question: ClaimQuestion) -> list[ClaimPart]:
    """One level beats every other; those ``near`` it may be as good, within the margin."""
    levels = dict(question.claim.level_arms)
    near = {str(level) for level in question.claim.near}
    best = levels.pop(str(question.claim.best))
    parts = []
    for size, (level, arm) in itertools.product(question.sizes, levels.items()):
        low = -question.margin if level in near else 0.0
        parts.append(question.difference(best, arm, size, low))
    return parts


def insensitive(question: ClaimQuestion) -> list[ClaimPart]:
    """The level does not matter: every pair is equivalent within the margin."""
    pairs = itertools.combinations(question.claim.level_arms.values(), 2)
    return [
        question.difference(*pair, size, -question.margin, question.margin)
        for size, pair in itertools.product(question.sizes, pairs)
    ]


def grows(question: ClaimQuestion, sign: int = 1) -> list[ClaimPart]:
    """The relative gain of first over second grows with the batch size: its slope is above 0.

    With ``sign`` -1 the gain grows as the batch gets smaller.
    """
    parts: list[ClaimPart] = []
    step = "doubling" if sign > 0 else "halving"
    for first, second in itertools.product(question.claim.first, question.claim.second):
        ours, missing = question.by_size(first)
        theirs, also_missing = question.by_size(second)
        parts += {part.part: part for part in (*missing, *also_missing)}.values()
        gains: dict[int, dict[int, float]] = {}
        for size in ours:
            if size in theirs:
                gains[size] = {}
                for seed, value in ours[size].items():
                    base = theirs[size].get(seed, 0.0)
                    if base > 0:
                        gains[size][seed] = sign * 100 * (value / base - 1)
        label = f"{question.where()}: gain of {first.name} over {second.name} per {step}"
        parts.append(_slope(label, gains, unit="% of gain"))
    return parts


def gains_most(question: ClaimQuestion) -> list[ClaimPart]:
    """First gains more over second on the first dataset of the claim than on each of the others."""
    datasets = [name for scope in question.claim.published for name in scope.datasets]
    if question.condition.dataset != datasets[0]:
        return []
    parts = []
    for size, first, second in question.contrasts:
        for other in datasets[1:]:
            elsewhere = replace(question, condition=replace(question.condition, dataset=other))
            measured = [
                question.measured(first, size),
                question.measured(second, size),
                elsewhere.measured(first, size),
                elsewhere.measured(second, size),
            ]
            here_first, here_second, else_first, else_second = _common(
                [side.by_seed for side in measured]
            )
            gains = here_first - here_second - (else_first - else_second)
            label = f"{question.where(size)}: {first.name} - {second.name}, less that on {other}"
            note = next((side.note for side in measured if side.note), "")
            parts.append(ClaimPart(label, gains, note=note, sisters=f"gain {question.where()}"))
    return parts


def cost_ratio(question: ClaimQuestion) -> list[ClaimPart]:
    """First costs so many times what second costs: the ratio lies in ``between``."""
    low, high = map(np.log, _range_of(question.claim))
    parts = []
    sisters = f"ratio {question.where()}"
    for size, first, second in question.contrasts:
        ours = question.measured(first, size)
        theirs = question.measured(second, size)
        label = f"{question.where(size)}: {first.name} / {second.name}"
        our_logs, their_logs = np.log(_common([ours.by_seed, theirs.by_seed]))
        ratios = our_logs - their_logs
        part = ClaimPart(label, ratios, low, high, RATIO, ours.note or theirs.note, sisters)
        if question.metric in COUNTS and len(ratios):
            inside = bool(np.all((low < ratios) & (ratios < high)))
            part = replace(part, wins=inside, note=f"{np.exp(ratios[0]):.2f} {RATIO}, counted")
        parts.append(part)
    return parts


def costs(question: ClaimQuestion) -> list[ClaimPart]:
    """First costs so much: its cost lies in ``between``."""
    low, high = _range_of(question.claim)
    unit = display_name(question.metric).replace("_", " ")
    parts = []
    for size, arm in itertools.product(question.sizes, question.claim.first):
        measured = question.measured(arm, size)
        (values,) = _common([measured.by_seed])
        label = f"{question.where(size)}: {arm.name}"
        parts.append(ClaimPart(label, values, low, high, unit, measured.note))
    return parts


def _range_of(claim: Claim) -> tuple[float, float]:
    """Return the lowest and the highest value that agree with a claim; the latter may be inf."""
    low, *rest = claim.between
    return low, rest[0] if rest else np.inf


KINDS: Mapping[str, Callable[[ClaimQuestion], list[ClaimPart]]] = {
    "beats": beats,
    "differs_by": differs_by,
    "monotone": monotone,
    "best_at": best_at,
    "insensitive": insensitive,
    "grows": grows,
    "shrinks": partial(grows, sign=-1),
    "gains_most": gains_most,
    "cost_ratio": cost_ratio,
    "costs": costs,
}


def parts_of(
    claim: Claim, measurements: Measurements, condition: ClaimCondition
) -> list[ClaimPart]:
    """Return the parts of a claim under one condition."""
    parts = []
    for metric in claim.metrics:
        parts += KINDS[claim.kind](ClaimQuestion(claim, measurements, condition, metric))
    return parts


def _common(by_seed: Sequence[BySeed]) -> Floats:
    """Return the values (len(by_seed), S) over the S seeds that all mappings have."""
    seeds = sorted(set.intersection(*map(set, by_seed)))
    rows = []
    for values in by_seed:
        rows.append([values[seed] for seed in seeds])
    return np.array(rows, dtype=float)


def _slope(label: str, by_size: Mapping[int, BySeed], unit: str = "points") -> ClaimPart:
    """Return the part of least-squares slopes over log2 of the batch size, one per seed."""
    if len(by_size) < 2:
        return ClaimPart(label, unit=unit, note="needs runs at 2 batch sizes or more")
    values = _common(list(by_size.values()))
    x = np.log2(list(by_size))
    x -= x.mean()
    return ClaimPart(label, (x @ values) / (x @ x), unit=unit)
