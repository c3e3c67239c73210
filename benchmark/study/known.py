"""What a study may name: asked of the registries and catalogues, none of which imports torch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmark.core.errors import Problem
from benchmark.core.records import DatasetChoice
from benchmark.core.registry import registered_names
from benchmark.losses.catalogue import LossFacts
from benchmark.metrics.names import metric_of
from benchmark.study.data_files import published_names


@dataclass(frozen=True)
class Known:
    """Names, and the checks of what belongs to a name.

    losses             {registry name: its facts and hyperparameters}
    datasets           {registry name: metric families it can give}
    samplers           registry names
    without_training   names of the datasets that are for evaluation only
    check_params       (dataset, params) -> problems, with a key for each wrong parameter
    sampler_problems   (name, params, batch_size) -> problems
    training_images    (dataset, params) -> their number, None where only its files say it
    """

    losses: dict[str, LossFacts]
    datasets: dict[str, tuple[str, ...]]
    samplers: tuple[str, ...]
    without_training: tuple[str, ...]
    check_params: Callable[[str, dict[str, Any]], list[Problem]]
    sampler_problems: Callable[[str, dict[str, Any], int], list[Problem]]
    training_images: Callable[[str, dict[str, Any]], int | None]

    def missing_metric(self, dataset: DatasetChoice, metric: str) -> str | None:
        """Return that ``dataset`` cannot give ``metric``, or None when it can."""
        families = self.datasets[dataset.name]
        measured = metric_of(metric)
        if measured is not None and measured.family in families:
            return None
        return f"dataset '{dataset.label}' cannot give '{metric}'; it gives: {', '.join(families)}"

    # Folders are read only when a study names an entry.
    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return registered_names("TABLES", "report/tables")

    @cached_property
    def figures(self) -> tuple[str, ...]:
        """The names of all figures."""
        return registered_names("FIGURES", "report/figures")

    @cached_property
    def published(self) -> tuple[str, ...]:
        """The names under which published results can be asked for."""
        return published_names()


def load_known() -> Known:
    """Return what is registered in this installation, plugins included."""
    from benchmark.datasets import (
        DATASETS,
        check_dataset_params,
        dataset_metrics,
        training_images,
    )
    from benchmark.input.samplers import SAMPLERS, check
    from benchmark.losses.catalogue import load_catalogue

    return Known(
        losses=load_catalogue(),
        datasets={entry.name: dataset_metrics(entry.name) for entry in DATASETS},
        samplers=tuple(SAMPLERS.names()),
        without_training=tuple(entry.name for entry in DATASETS if not entry.target.trains),
        check_params=check_dataset_params,
        sampler_problems=check,
        training_images=training_images,
    )
