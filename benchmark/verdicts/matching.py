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
from typing import Any, Self

from benchmark.core.options import defaults_of
from benchmark.core.records import Cell, RunSpec, settings_of
from benchmark.datasets import DATASETS
from benchmark.published.fidelity import Row, assumed, large_effects, rows_of_run, study_ledger
from benchmark.published.loading import load_papers
from benchmark.published.paper import Papers
from benchmark.published.schema import BATCH_SIZE, PublishedNumber
from benchmark.published.vocabulary import (
    EMBEDDING_DIM,
    OPTIONS,
    Requirement,
    load_vocabulary,
    split_suffix,
)
from benchmark.study import Study


@dataclass(frozen=True)
class Candidate:
    """A cell of a study's grid.

    settings      the columns of ``runs.csv`` that its runs share, and the options by name
    backbone      in the papers' words
    evaluated_on  the datasets that its scores are measured on
    recall_at     the K that are measured
    by_option     the columns that options of the recipe change
    by_variant    the hyperparameters that the study itself sets
    assumed       what may move its scores by more than 0.3 points: ("dataset (above 1)",)
    against       values that follow the authors' code against the text
    """

    cell: Cell
    settings: Mapping[str, Any]
    backbone: str
    evaluated_on: tuple[str, ...]
    recall_at: tuple[int, ...]
    by_option: frozenset[str] = frozenset()
    by_variant: frozenset[str] = frozenset()
    assumed: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    @property
    def changed(self) -> frozenset[str]:
        """The columns in which it differs from its recipe and loss as they stand."""
        return self.by_option | self.by_variant

    @property
    def reading(self) -> int:
        """The number of the reading that an option of the cell asks for; 0 without one."""
        for number, option in enumerate(load_vocabulary().readings, 1):
            if option in self.cell.setting.options:
                return number
        return 0

    @property
    def runs(self) -> tuple[str, int, Mapping[str, Any]]:
        """What is equal for two candidates that differ in their names alone."""
        return self.cell.dataset, self.cell.batch_size, {**self.settings, OPTIONS: ()}


Candidates = Mapping[Cell, Candidate]


@dataclass(frozen=True)
class StudyGrid:
    """What is compared with papers: a study, its cells, and the ledger of its recipes."""

    study: Study
    papers: Papers
    ledger: Sequence[Row]
    candidates: Candidates

    @classmethod
    def of(cls, study: Study) -> Self:
        """Make the grid of a study, once for all that is compared."""
        ledger = study_ledger(study)
        return cls(study, load_papers(), ledger, candidates(study, ledger))

    @property
    def asked(self) -> list[PublishedNumber]:
        """The published numbers that the study asks for."""
        return self.papers.asked(self.study.references.published)


def candidates(study: Study, ledger: Iterable[Row]) -> Candidates:
    """Return the candidates of a study by their cells, in the order of the study."""
    by_cell: dict[Cell, Candidate] = {}
    for block in study.blocks:
        variants = {loss.label: loss for loss in block.losses}
        for spec in block.specs():
            if spec.cell in by_cell:
                continue
            name = spec.loss.name
            rows = rows_of_run(ledger, block.recipe_name, name, block.setting.options)
            against = [row.against for row in rows.values()]
            own = variants[spec.loss.label].own
            by_cell[spec.cell] = replace(
                _candidate(spec),
                by_option=_overridden(block.overrides, name),
                by_variant=frozenset(f"loss.{hyperparameter}" for hyperparameter in own),
                assumed=large_effects(rows),
                against=tuple(filter(None, against)),
            )
    return by_cell


def _candidate(spec: RunSpec) -> Candidate:
    words = load_vocabulary()
    settings = {**settings_of(spec), OPTIONS: spec.setting.options}
    dataset = spec.dataset
    backbone = words.backbone(spec.recipe.model.backbone)
    width = words.conditions[EMBEDDING_DIM].column
    if settings.get(width) is None:
        settings[width] = words.widths.get(backbone)
    evaluated_on = [dataset.label]
    if dataset.name in DATASETS.names():
        # protocols of a training set may be named after other datasets
        params = {**defaults_of(DATASETS[dataset.name].target.Config), **dataset.params}
        evaluated_on += [*params.get("landmarks", ()), *params.get("evaluated_on", ())]
    k = tuple(spec.recipe.evaluation.recall_at)
    return Candidate(spec.cell, settings, backbone, tuple(evaluated_on), k)


def _overridden(overrides: Mapping[str, Any], loss: str) -> frozenset[str]:
    """Return the columns that an option of a recipe changes for a loss (registry name)."""
    columns = set()
    for section, values in overrides.items():
        if section == "losses":
            columns |= {f"loss.{name}" for name in values.get(loss, {})}
            continue
        names = set(values)
        if section == "sampler":
            names |= set(values.get("params") or {})
        columns |= {f"recipe.{section}.{name}" for name in names - {"params"}}
    return frozenset(columns)


@dataclass(frozen=True)
class Stated:
    """What is stated of the runs behind a number. "" and None mean that a value is left open.

    free     settings that the number does not depend on: they may differ
    """

    dataset: str
    loss: str
    protocol: str = ""
    backbone: str = ""
    batch_size: int | None = None
    requirements: tuple[Requirement, ...] = ()
    free: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The facts that the runs must share, for a reader."""
        size = "" if self.batch_size is None else f"batch size {self.batch_size}"
        facts = [self.backbone, size, *(requirement.text for requirement in self.requirements)]
        return ", ".join(filter(None, facts)) or "no further fact"


@dataclass(frozen=True)
class Match:
    """The candidate and split that belong to a number, or None and the reason."""

    candidate: Candidate | None
    split: str = ""
    reason: str = ""


def rests_on(number: PublishedNumber, candidate: Candidate) -> str:
    """Return what the runs of a number, and the reading of its row, assume; or ""."""
    return assumed((*candidate.assumed, *number.assumes))


def stated_by(number: PublishedNumber) -> Stated:
    """Return what a published number states and means of its runs."""
    size = number.batch_size or number.means.get(BATCH_SIZE)
    return Stated(
        number.dataset,
        number.loss,
        number.protocol,
        number.backbone,
        int(size) if size else None,
        number.required,
        load_vocabulary().free(number.metric),
    )


def match(
    stated: Stated,
    candidates: Iterable[Candidate],
    splits: Mapping[Cell, Set[str]] = MappingProxyType({}),
) -> Match:
    """Return the one of ``candidates`` that belongs to what is stated.

    ``splits`` are the splits with scores, by cell.
    """
    on_dataset = [candidate for candidate in candidates if stated.dataset in candidate.evaluated_on]
    if not on_dataset:
        return Match(None, reason=f"no run on {stated.dataset or 'an unnamed dataset'}")
    no_run = f"no run of {stated.loss} on {stated.dataset}"
    if not any(candidate.cell.base_loss == stated.loss for candidate in on_dataset):
        return Match(None, reason=no_run)
    fitting = [candidate for candidate in on_dataset if fits(stated, candidate)]
    if not fitting:
        return Match(None, reason=f"{no_run} with {stated.text}")
    reading = min(candidate.reading for candidate in fitting)
    same_reading = [candidate for candidate in fitting if candidate.reading == reading]
    first = max(same_reading, key=lambda candidate: len(candidate.cell.setting.options))
    if any(candidate.runs != first.runs for candidate in same_reading):
        names = ", ".join(candidate.cell.label for candidate in same_reading)
        return Match(None, reason=f"ambiguous: only {stated.text} is stated; fitting are {names}")
    suffix = split_suffix(stated.requirements)
    if stated.dataset != first.cell.dataset:
        named = "_".join(filter(None, (stated.dataset, stated.protocol)))
        return Match(first, f"{named}{suffix}")
    scored = splits.get(first.cell, frozenset())
    only = "test" if "test" in scored or len(scored) != 1 else next(iter(scored))
    return Match(first, f"{stated.protocol or only}{suffix}")


def fits(stated: Stated, candidate: Candidate) -> bool:
    """Return whether rules 1 to 3 hold."""
    cell = candidate.cell
    changed = candidate.by_variant if candidate.reading else candidate.changed
    meets = (
        stated.dataset in candidate.evaluated_on
        and stated.loss == cell.base_loss
        and stated.backbone in ("", candidate.backbone)
        and stated.batch_size in (None, cell.batch_size)
        and all(requirement.met(candidate.settings) for requirement in stated.requirements)
    )
    if not meets:
        return False
    conditions = [requirement.condition for requirement in stated.requirements]
    for column in changed.difference(stated.free):
        if not any(condition.covers(column) for condition in conditions):
            return False
    return True


def reached_numbers(grid: StudyGrid) -> list[tuple[PublishedNumber, Cell]]:
    """Return the published numbers that the study's runs will reach, each with its cell."""
    reached = []
    for number in grid.asked:
        if not number.is_score:
            continue
        candidate = match(stated_by(number), grid.candidates.values()).candidate
        if candidate is not None:
            reached.append((number, candidate.cell))
    return reached
