"""Datasets: one file each, found by their registry. Nothing here imports torch."""

from collections.abc import Mapping
from typing import Any

from benchmark.core.errors import Problem
from benchmark.core.options import build, problems
from benchmark.core.registry import Registry
from benchmark.datasets.base import Dataset, DatasetLoader
from benchmark.datasets.io.roots import with_root

DATASETS = Registry("dataset", "benchmark.datasets")


def load_dataset(name: str, params: Mapping[str, Any] | None = None) -> Dataset:
    """Return the dataset registered as ``name``; raise ConfigError or DataError if it cannot be.

    ``benchmark.datasets.io.roots.with_root`` gives the default root of a published dataset.
    """
    return loader_of(name, params).load()


def check_dataset_params(name: str, params: Mapping[str, Any] | None = None) -> list[Problem]:
    """Return what is wrong with the parameters of a dataset, without reading its files."""
    loader = DATASETS[name].target
    return problems(loader.Config, with_root(name, loader, params or {}), f"dataset '{name}'")


def training_images(name: str, params: Mapping[str, Any] | None = None) -> int | None:
    """Return the published number of training images; None for a dataset without one."""
    return loader_of(name, params).expected_counts().get("train", {}).get("images")


def dataset_metrics(name: str) -> tuple[str, ...]:
    """Return the metric families of a dataset, as benchmark.metrics names them."""
    return DATASETS[name].target.metrics


def loader_of(name: str, params: Mapping[str, Any] | None = None) -> DatasetLoader:
    """Return the loader of a dataset; raise ConfigError when its parameters are not valid."""
    target = DATASETS[name].target
    return target(build(target.Config, with_root(name, target, params or {}), f"dataset '{name}'"))
