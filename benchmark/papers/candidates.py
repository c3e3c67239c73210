"""The cells of a study as data, for published numbers, claims and figures to be matched with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmark.core.options import defaults_of
from benchmark.core.records import Cell, DatasetChoice, RunSpec, settings_of
from benchmark.datasets import DATASETS
from benchmark.papers.vocabulary import EMBEDDING_DIM, OPTIONS, load_vocabulary
from benchmark.study import Study


@dataclass(frozen=True)
class Candidate:
    """A cell of a study's grid.

    settings      the columns of ``runs.csv`` that its runs share, and the options by name
    by_option     the columns that options of the recipe change
    by_variant    the hyperparameters that the study itself sets
    backbone      in the papers' words
    evaluated_on  the datasets that its scores are measured on
    recall_at     the K that are measured
    """

    cell: Cell
    settings: Mapping[str, Any]
    by_option: frozenset[str]
    by_variant: frozenset[str]
    backbone: str
    evaluated_on: tuple[str, ...]
    recall_at: tuple[int, ...]

    @property
    def changed(self) -> frozenset[str]:
        """The columns in which it differs from its recipe and loss as they stand."""
        return self.by_option | self.by_variant

    def same_runs(self, other: Candidate) -> bool:
        """Return whether another candidate differs in its name alone."""
        first, second = (
            (each.cell.dataset, each.cell.batch_size, {**each.settings, OPTIONS: ()})
            for each in (self, other)
        )
        return first == second


Candidates = Mapping[Cell, Candidate]


def candidates(study: Study) -> Candidates:
    """Return the candidates of a study by their cells, in the order of the study."""
    found: dict[Cell, Candidate] = {}
    for block in study.blocks:
        own = {loss.label: frozenset(f"loss.{name}" for name in loss.own) for loss in block.losses}
        for spec in block.specs():
            if spec.cell not in found:
                options = frozenset(_overridden(block.overrides, spec.loss.name))
                found[spec.cell] = _candidate(spec, options, own[spec.loss.label])
    return found


def _candidate(spec: RunSpec, by_option: frozenset[str], by_variant: frozenset[str]) -> Candidate:
    words, settings = load_vocabulary(), settings_of(spec)
    backbone = words.backbone(spec.recipe.model.backbone)
    width = words.conditions[EMBEDDING_DIM].column
    if settings.get(width) is None:
        settings[width] = words.widths.get(backbone)
    return Candidate(
        spec.cell,
        {**settings, OPTIONS: spec.setting.options},
        by_option,
        by_variant,
        backbone,
        (spec.dataset.label, *_also_on(spec.dataset)),
        tuple(spec.recipe.evaluation.recall_at),
    )


def _overridden(overrides: Mapping[str, Any], loss: str) -> Iterator[str]:
    """Yield the columns that are laid over a recipe for a loss (registry name)."""
    for section, values in overrides.items():
        if section == "losses":
            yield from (f"loss.{name}" for name in values.get(loss, {}))
        else:
            flat = {**values, **(values.get("params") or {} if section == "sampler" else {})}
            yield from (f"recipe.{section}.{name}" for name in flat if name != "params")


def _also_on(dataset: DatasetChoice) -> tuple[str, ...]:
    """Return the other datasets that the protocols of a training set are named after."""
    if dataset.name not in DATASETS.names():
        return ()
    defaults = defaults_of(DATASETS[dataset.name].target.Config)
    given = {**defaults, **dataset.params}
    return (*given.get("landmarks", ()), *given.get("evaluated_on", ()))
