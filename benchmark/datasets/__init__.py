"""Datasets, found by their registry; relatives share a file. Nothing here imports torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.core.environment import DATA, value_of
from benchmark.core.errors import Problem
from benchmark.core.options import build, problems
from benchmark.core.registry import Registry
from benchmark.datasets.base import Dataset, DatasetLoader

# ``pages``: where people get the files.
DATASETS = Registry("dataset", "benchmark.datasets", {"pages": []})


def load_dataset(name: str, params: Mapping[str, Any] | None = None) -> Dataset:
    """Return the dataset registered as ``name``; raise ConfigError or DataError if it cannot be."""
    return loader_of(name, params).load()


def check_dataset_params(
    name: str,
    params: Mapping[str, Any] | None = None,
) -> list[Problem]:
    """Return the problems of the parameters of a dataset, without reading its files."""
    config = DATASETS[name].target.Config
    return problems(config, with_root(name, params), f"dataset '{name}'")


def training_images(name: str, params: Mapping[str, Any] | None = None) -> int | None:
    """Return the published number of training images; None for a dataset without one."""
    counts = loader_of(name, params).expected_counts()
    return counts.get("train", {}).get("images")


def dataset_metrics(name: str) -> tuple[str, ...]:
    """Return the metric families of a dataset, as benchmark.metrics names them."""
    return DATASETS[name].target.metrics


def loader_of(name: str, params: Mapping[str, Any] | None = None) -> DatasetLoader:
    """Return the loader of a dataset; raise ConfigError when its parameters are not valid."""
    target = DATASETS[name].target
    config = build(target.Config, with_root(name, params), f"dataset '{name}'")
    return target(config)


def with_root(name: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return ``params`` with the default root of a published dataset, where they give none.

    It is ``$BENCHMARK_DATA/<name>``, by default ``data/<name>``: a study names no folders, so that
    its specifications mean the same on every machine. Your own folders have no default.
    """
    params = dict(params or {})
    published = DATASETS[name].target.archives
    if published and params.get("root") is None:
        data = Path(value_of(DATA) or "data")
        params["root"] = str(data / name)
    return params
