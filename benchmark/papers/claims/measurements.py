"""The numbers that a claim compares: one value per seed for an arm under a condition."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmark.core.records import Cell
from benchmark.metrics.postprocessing import SPLIT_SUFFIX
from benchmark.papers.candidates import Candidate, Candidates
from benchmark.papers.claims.model import COST_METRICS, PRINTED, Arm, Claim, Scope, printed_numbers
from benchmark.papers.costs import convergence_of, costs_of
from benchmark.papers.library import cite, paper_of
from benchmark.papers.matching import Stated, match
from benchmark.papers.printed.gap import GapDecrease, relative_gaps
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.runs.table import RunTable
from benchmark.stats.samples import Samples


@dataclass(frozen=True)
class Condition:
    """One dataset, protocol and backbone ("": open), and the batch sizes of a claim there."""

    dataset: str
    protocol: str = ""
    backbone: str = ""
    batch_sizes: tuple[int, ...] = ()

    def sizes(self, arms: Sequence[Arm]) -> tuple[int | None, ...]:
        """Return the batch sizes to go through; (None,) when every arm brings its own."""
        return (None,) if all(arm.batch_size for arm in arms) else self.batch_sizes


@dataclass(frozen=True)
class Measured:
    """Values by seed (scores in percent), or none and the reason.

    source    cell and split
    diverged  runs that diverged, and all that ended
    printed   the number that stands in place of runs
    """

    by_seed: Mapping[int, float] = field(default_factory=dict)
    note: str = ""
    source: tuple[Cell, str] | None = None
    diverged: tuple[int, int] = (0, 0)
    printed: float | None = None


class Measurements:
    """The headline scores and the costs of a study, found by arm and condition."""

    def __init__(self, table: RunTable, candidates: Candidates, gaps: Iterable[GapDecrease] = ()):
        self._samples = Samples(table)
        gap_sizes = relative_gaps(gaps, self._samples.statuses)
        self._costs = {**costs_of(table), **convergence_of(table), **gap_sizes}
        self._by_dataset: dict[str, list[Candidate]] = {}
        for cell, each in candidates.items():
            if cell in self._samples.statuses:
                self._by_dataset.setdefault(cell.dataset, []).append(each)

    def find(self, arm: Arm, condition: Condition, batch_size: int | None, metric: str) -> Measured:
        """Return the values of the runs that belong to ``arm``, or the number printed for it."""
        if PRINTED in arm.where:
            return _printed(arm, condition, metric)
        stated = Stated(
            condition.dataset,
            arm.loss,
            condition.protocol,
            arm.backbone or condition.backbone,
            arm.batch_size or batch_size,
            (*arm.required, *arm.preferred),
            load_vocabulary().free(metric),
        )
        here = self._by_dataset.get(condition.dataset, ())
        found = match(stated, here, self._samples.splits)
        if found.candidate is None and arm.preferred:
            found = match(replace(stated, requirements=arm.required), here, self._samples.splits)
        if found.candidate is None:
            return Measured(note=found.reason)
        cell, split = found.candidate.cell, found.split
        if metric in COST_METRICS:
            values = self._costs.get((cell, metric), {})
        else:
            values = self._samples.sample(cell, split, metric).by_seed
        statuses = self._samples.statuses[cell]
        gone = statuses.get("diverged", 0)
        note = "" if values else self._why(cell, metric)
        return Measured(values, note, (cell, split), (gone, gone + statuses.get("ok", 0)))

    def _why(self, cell: Cell, metric: str) -> str:
        statuses = self._samples.statuses[cell]
        if statuses.get("ok"):
            return f"the runs of {cell.loss} have no {metric}"
        counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        return f"no finished run of {cell.loss} ({counts})"

    def published(self, claim: Claim) -> list[Condition]:
        """Return the conditions of the paper; open batch sizes are those of the runs."""
        return [
            self._sized(Condition(name, scope.protocol, scope.backbone), claim, scope.batch_sizes)
            for scope in claim.published
            for name in scope.datasets
        ]

    def here(
        self, claim: Claim, *, every_size: bool = False, anywhere: bool = False
    ) -> list[Condition]:
        """Return the conditions of the study under which it can answer for the paper.

        They have a dataset, protocol and backbone of the paper, or with ``anywhere`` any. Batch
        sizes are those that the paper states as far as they were run, else (or with
        ``every_size``) all. Backbones are gone through one by one, unless the claim compares them.
        Expanded queries are an arm, not a condition. Costs are the same for every protocol of a
        run.
        """
        stated = {size for scope in claim.published for size in scope.batch_sizes}
        own_backbones, scopes = any(arm.backbone for arm in claim.arms), claim.published
        found: dict[Condition, None] = {}
        for dataset, candidates in self._by_dataset.items():
            for each in candidates:
                splits = self._samples.splits.get(each.cell, set())
                plain = sorted(split for split in splits if not split.endswith(SPLIT_SUFFIX))
                for split in plain[: 1 if set(claim.metrics) <= set(COST_METRICS) else None]:
                    backbone = "" if own_backbones else each.backbone
                    if anywhere or any(_of_paper(at, dataset, split, backbone) for at in scopes):
                        found[Condition(dataset, split, backbone)] = None
        sized = []
        for condition in found:
            run = self._sized(condition, claim, ()).batch_sizes
            asked = tuple(size for size in run if size in stated and not every_size)
            sized.append(replace(condition, batch_sizes=asked or run))
        return sized

    def _sized(self, condition: Condition, claim: Claim, sizes: tuple[int, ...]) -> Condition:
        """Return the condition with ``sizes``, or with all at which the claim's losses were run."""
        losses = {arm.loss for arm in claim.arms}
        run = {
            each.cell.batch_size
            for each in self._by_dataset.get(condition.dataset, ())
            if each.cell.base_loss in losses and condition.backbone in ("", each.backbone)
        }
        return replace(condition, batch_sizes=tuple(sorted(sizes or run)))


def _printed(arm: Arm, condition: Condition, metric: str) -> Measured:
    source, _, table = str(arm.where[PRINTED]).partition("/")
    paper = paper_of(source)
    numbers = paper.table(table, source) if paper else []
    found = printed_numbers(arm, condition.dataset, condition.protocol, metric, numbers)
    if not found:
        return Measured(note=f"{cite(source, table)} prints no {metric} of {arm.loss} here")
    return Measured(printed=found[0].points)


def _of_paper(scope: Scope, dataset: str, protocol: str, backbone: str) -> bool:
    """Return whether runs are what the paper speaks of; an open part of either side is no bar."""
    return (
        dataset in scope.datasets
        and scope.protocol in ("", protocol)
        and (scope.backbone in ("", backbone) or not backbone)
    )
