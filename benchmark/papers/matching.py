"""Which of our runs belong to a published number, or to one arm of a claim.

Data are compared, never names. A cell of a study belongs if everything that is stated holds for it,
and if everything special about it is stated:

1. Dataset, loss, backbone and batch size are equal where they are stated. The dataset is the one
   trained on, or one that a protocol of it is named after.
2. Each stated or implied condition is met by the settings of the runs (``vocabulary.yaml``).
3. Every setting that an option or a variant of the study changes is one that a stated condition
   covers. An option that is another reading of the same rows is left out of this, and the plain
   runs go first.
4. The protocol is the split of that name, behind the dataset's where that is not the training set.
   A number without one means "test", or the only test split there is.

What is left open does not restrict. If several cells with different settings remain, the number is
ambiguous and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from benchmark.core.records import Cell
from benchmark.papers.candidates import Candidate
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.vocabulary import SPLIT, Requirement, Vocabulary, load_vocabulary


@dataclass(frozen=True)
class Stated:
    """What is stated of the runs behind a number; "" and None are open.

    free     settings that the number does not depend on, so that they may differ
    """

    dataset: str
    loss: str
    protocol: str = ""
    backbone: str = ""
    batch_size: int | None = None
    requirements: tuple[Requirement, ...] = ()
    free: tuple[str, ...] = ()

    def without(self, *keys: str) -> Stated:
        """Return what is left when some conditions are given up."""
        kept = tuple(each for each in self.requirements if each.key not in keys)
        return replace(self, requirements=kept)

    @property
    def text(self) -> str:
        """The facts that the runs must share, for a reader."""
        size = "" if self.batch_size is None else f"batch size {self.batch_size}"
        facts = [self.backbone, size, *(each.text for each in self.requirements)]
        return ", ".join(filter(None, facts)) or "no further fact"


@dataclass(frozen=True)
class Match:
    """The candidate and split that belong to a number, or None and the reason."""

    candidate: Candidate | None
    split: str = ""
    reason: str = ""


def stated_by(number: PublishedNumber, words: Vocabulary) -> Stated:
    """Return what a published number states and means of its runs."""
    means = dict(number.means)
    implied_size = means.pop("batch_size", None)
    dim = {"embedding_dim": number.embedding_dim} if number.embedding_dim else {}
    size = number.batch_size if number.batch_size is not None else implied_size
    return Stated(
        number.dataset,
        number.loss,
        number.protocol,
        number.backbone,
        None if size is None else int(size),
        words.requirements({**dim, **number.conditions, **means}),
        words.free(number.metric),
    )


def match(
    stated: Stated,
    candidates: Iterable[Candidate],
    splits: Mapping[Cell, Set[str]] = MappingProxyType({}),
) -> Match:
    """Return the one of ``candidates`` that belongs to what is stated.

    ``splits`` are those with scores, by cell.
    """
    here = [each for each in candidates if stated.dataset in each.evaluated_on]
    if not here:
        return Match(None, reason=f"no run on {stated.dataset or 'an unnamed dataset'}")
    words = f"no run of {stated.loss} on {stated.dataset}"
    if not any(each.cell.base_loss == stated.loss for each in here):
        return Match(None, reason=words)
    fitting = [each for each in here if fits(stated, each)]
    if not fitting:
        return Match(None, reason=f"{words} with {stated.text}")
    readings = load_vocabulary().readings
    rank = min(_rank(each, readings) for each in fitting)
    group = [each for each in fitting if _rank(each, readings) == rank]
    first = max(group, key=lambda each: len(each.cell.setting.options))
    if not all(each.same_runs(first) for each in group):
        names = ", ".join(each.cell.label for each in group)
        return Match(None, reason=f"ambiguous: only {stated.text} is stated; fitting are {names}")
    return Match(first, split_of(stated, first, splits.get(first.cell, frozenset())))


def fits(stated: Stated, candidate: Candidate) -> bool:
    """Return whether rules 1 to 3 hold."""
    cell = candidate.cell
    return (
        stated.dataset in candidate.evaluated_on
        and stated.loss == cell.base_loss
        and stated.backbone in ("", candidate.backbone)
        and stated.batch_size in (None, cell.batch_size)
        and all(each.met(candidate.settings) for each in stated.requirements)
        and not unstated(stated, candidate)
    )


def unstated(stated: Stated, candidate: Candidate) -> set[str]:
    """Return the changed settings of a candidate that nothing stated covers."""
    options = candidate.cell.setting.options
    reading = any(each in options for each in load_vocabulary().readings)
    changed = candidate.by_variant if reading else candidate.changed
    return {
        column
        for column in changed - set(stated.free)
        if not any(each.condition.covers(column) for each in stated.requirements)
    }


def _rank(candidate: Candidate, readings: Sequence[str]) -> int:
    """Return 0 for runs that are no other reading of the row, else the place of their reading."""
    options = candidate.cell.setting.options
    return next((at for at, each in enumerate(readings, 1) if each in options), 0)


def split_of(stated: Stated, candidate: Candidate, splits: Set[str]) -> str:
    """Return the split that rule 4 means."""
    asked = [each for each in stated.requirements if each.condition.column == SPLIT]
    suffix = "".join(str(end) for each in asked for end in each.condition.values.get(each.word, ()))
    if stated.dataset != candidate.cell.dataset:
        return "_".join(filter(None, (stated.dataset, stated.protocol))) + suffix
    only = "test" if "test" in splits or len(splits) != 1 else next(iter(splits))
    return f"{stated.protocol or only}{suffix}"
