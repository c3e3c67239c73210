"""What a study may name: asked of the registries and catalogues, none of which imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmark.metrics.names import check_metric, metric_of


@dataclass(frozen=True)
class Known:
    """Names, and the checks of what belongs to a name.

    losses             {registry name: JSON Schema of its hyperparameters}
    datasets           {registry name: metric families it can give}
    samplers           registry names
    without_references names of the losses that rank nothing but the batch or their proxies
    without_training   names of the datasets that are for evaluation only
    dataset_problems   (name, params) -> messages
    sampler_problems   (name, params, batch_size) -> messages
    """

    losses: dict[str, dict[str, Any]]
    datasets: dict[str, tuple[str, ...]]
    samplers: tuple[str, ...]
    without_references: tuple[str, ...]
    without_training: tuple[str, ...]
    dataset_problems: Callable[[str, dict[str, Any]], list[str]]
    sampler_problems: Callable[[str, dict[str, Any], int], list[str]]

    def metric_problem(self, metric: str, recall_at: Sequence[int]) -> str | None:
        """Returns why ``metric`` is unknown, or not measured with these K; None when it is measured."""
        problem = check_metric(metric)
        if problem is not None:
            return problem
        k = metric.removeprefix("recall_at_")
        if k != metric and int(k) not in recall_at:
            return f"'{metric}' is not measured: the recipe's evaluation.recall_at is {list(recall_at)}"
        return None

    def training_problem(self, dataset: str) -> str | None:
        """Returns why nothing can be trained on ``dataset``, or None when something can."""
        if dataset not in self.without_training:
            return None
        return f"'{dataset}' has no training images; name the dataset to train on: sfm120k is evaluated on this one"

    def gives(self, dataset: str, metric: str) -> bool:
        """Says whether ``dataset`` can give ``metric``."""
        return metric_of(metric).family in self.datasets[dataset]

    # The registries below are walked only when a study names an entry: that imports every one of its files.
    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Returns the names of all tables."""
        from benchmark.report.tables import TABLES

        return tuple(TABLES.names())

    @cached_property
    def figures(self) -> tuple[str, ...]:
        """Returns the names of all figures."""
        from benchmark.report.figures import FIGURES

        return tuple(FIGURES.names())

    @cached_property
    def published(self) -> tuple[str, ...]:
        """Returns the names under which published results can be asked for."""
        from benchmark.papers.references import published_names

        return tuple(published_names())


def load_known() -> Known:
    """Returns what is registered in this installation, plugins included."""
    from benchmark.datasets import DATASETS, check_dataset_params, dataset_metrics
    from benchmark.input.samplers import SAMPLERS, check
    from benchmark.losses.catalogue import load_catalogue

    catalogue = load_catalogue()
    return Known(
        losses={name: facts.schema for name, facts in catalogue.items()},
        datasets={entry.name: dataset_metrics(entry.name) for entry in DATASETS},
        samplers=tuple(SAMPLERS.names()),
        without_references=tuple(
            name for name, facts in catalogue.items() if not facts.accepts_references
        ),
        without_training=tuple(entry.name for entry in DATASETS if not entry.target.trains),
        dataset_problems=check_dataset_params,
        sampler_problems=check,
    )
