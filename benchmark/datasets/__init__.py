"""Datasets: one file each, found by their registry. Nothing here imports torch."""

import reprlib
from collections.abc import Mapping
from typing import Any

from benchmark.core.errors import ConfigError, Problem
from benchmark.core.options import build, problems, schema_of
from benchmark.core.plugin_errors import file_of
from benchmark.core.registry import Registry
from benchmark.datasets.base import Dataset, DatasetLoader
from benchmark.datasets.counts import Counts
from benchmark.datasets.io.roots import with_root
from benchmark.datasets.sound import are_counts, class_problems, dataset_problems

DATASETS = Registry("dataset", "benchmark.datasets")


def load_dataset(name: str, params: Mapping[str, Any] | None = None) -> Dataset:
    """Return the dataset registered as ``name``; raise ConfigError or DataError if it cannot be.

    ``benchmark.datasets.io.roots.with_root`` gives the default root of a published dataset. What a
    plugin's loader returns is checked.
    """
    target = DATASETS[name].target
    loader = _loader(name, params)
    try:
        dataset = loader.load()
    except Exception as error:
        DATASETS.raise_named(error, target)
    if file_of(target) and (wrong := list(dataset_problems(dataset))):
        raise ConfigError(DATASETS.words_of(target), wrong)
    return dataset


def check_dataset_params(name: str, params: Mapping[str, Any] | None = None) -> list[Problem]:
    """Return what is wrong with the parameters of a dataset, without reading its files."""
    loader = DATASETS[name].target
    schema = schema_of(loader.Config)
    return problems(schema, with_root(name, loader, params or {}), f"dataset '{name}'")


def training_images(name: str, params: Mapping[str, Any] | None = None) -> int | None:
    """Return the published number of training images; None for a dataset without one."""
    return published_counts(name, params).get("train", {}).get("images")


def published_counts(name: str, params: Mapping[str, Any] | None = None) -> Counts:
    """Return the published counts of a dataset with these parameters, {} if there are none."""
    target = DATASETS[name].target
    counts = _loader(name, params).expected_counts()
    if not are_counts(counts):
        words = f"its expected counts are {reprlib.repr(counts)}; give {{split: {{kind: number}}}}"
        raise ConfigError(DATASETS.words_of(target), [words])
    return counts


def dataset_metrics(name: str) -> tuple[str, ...]:
    """Return the metric families of a dataset, as benchmark.metrics names them."""
    return DATASETS[name].target.metrics


def plugin_problems() -> list[str]:
    """Return what is wrong with the loaders of plugins and their Configs."""
    return DATASETS.plugin_problems(DatasetLoader) + [
        f"{DATASETS.words_of(entry.target)}: {problem}"
        for entry in DATASETS
        for problem in class_problems(entry.target)
    ]


def require_sound_plugins() -> None:
    """Raise ConfigError for loaders of plugins that nothing can be loaded with."""
    if wrong := plugin_problems():
        raise ConfigError("plugins", wrong)


def _loader(name: str, params: Mapping[str, Any] | None) -> DatasetLoader:
    target = DATASETS[name].target
    require_sound_plugins()
    config = build(target.Config, with_root(name, target, params or {}), f"dataset '{name}'")
    try:
        return target(config)
    except Exception as error:
        DATASETS.raise_named(error, target)
