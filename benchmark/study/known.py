"""What a study may name: asked of the registries and catalogues, none of which imports torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmark.core.errors import Problem, unknown_name
from benchmark.core.recipe import UNTRAINED
from benchmark.core.records import DatasetChoice
from benchmark.core.registry import registered_names
from benchmark.metrics.names import check_metric, metric_of
from benchmark.study.data_files import published_names


@dataclass(frozen=True)
class Known:
    """Names, and the checks of what belongs to a name.

    losses             {registry name: JSON Schema of its hyperparameters}
    datasets           {registry name: metric families it can give}
    samplers           registry names
    without_references names of the losses that rank nothing but the batch or their proxies
    of_triplets        names of the losses that only take batches laid out as triplets
    without_training   names of the datasets that are for evaluation only
    check_params       (dataset, params) -> problems, with a key for each wrong parameter
    sampler_problems   (name, params, batch_size) -> problems
    training_images    (dataset, params) -> their number, None where only its files say it
    """

    losses: dict[str, dict[str, Any]]
    datasets: dict[str, tuple[str, ...]]
    samplers: tuple[str, ...]
    without_references: tuple[str, ...]
    of_triplets: tuple[str, ...]
    without_training: tuple[str, ...]
    check_params: Callable[[str, dict[str, Any]], list[Problem]]
    sampler_problems: Callable[[str, dict[str, Any], int], list[Problem]]
    training_images: Callable[[str, dict[str, Any]], int | None]

    def takes_references(self, loss: str, params: Mapping[str, Any]) -> bool:
        """Say whether a loss with these hyperparameters can rank a memory."""
        without = self.losses[loss].get("without_references", ())
        return loss not in self.without_references and params.get("class") not in without

    def metric_problem(self, metric: str, recall_at: Sequence[int]) -> str | None:
        """Return why ``metric`` is unknown, or not measured with these K; None when it is."""
        problem = check_metric(metric)
        if problem is not None:
            return problem
        k = metric.removeprefix("recall_at_")
        if k != metric and int(k) not in recall_at:
            words = f"the recipe's evaluation.recall_at is {list(recall_at)}"
            return f"'{metric}' is not measured: {words}"
        return None

    def dataset_problems(
        self, name: str, params: dict[str, Any], trains: bool = True
    ) -> list[Problem]:
        """Return why runs cannot use, or train on, a dataset; a wrong parameter has a key."""
        if name not in self.datasets:
            return [Problem(unknown_name("dataset", name, self.datasets))]
        if trains and name in self.without_training:
            words = (
                "name the dataset to train on (sfm120k is evaluated on landmark sets), or the only "
                f"loss '{UNTRAINED}'"
            )
            return [Problem(f"'{name}' has no training images; {words}")]
        return self.check_params(name, params)

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

    catalogue = load_catalogue()
    return Known(
        losses={name: facts.schema for name, facts in catalogue.items()},
        datasets={entry.name: dataset_metrics(entry.name) for entry in DATASETS},
        samplers=tuple(SAMPLERS.names()),
        without_references=tuple(
            name for name, facts in catalogue.items() if not facts.accepts_references
        ),
        of_triplets=tuple(name for name, facts in catalogue.items() if facts.kind == "triplets"),
        without_training=tuple(entry.name for entry in DATASETS if not entry.target.trains),
        check_params=check_dataset_params,
        sampler_problems=check,
        training_images=training_images,
    )
