"""The names that people read, for losses, metrics, datasets and conditions; the same everywhere."""

import functools
from collections.abc import Iterable

from benchmark.core.options import defaults_of
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.names import display_name
from benchmark.study import Study

metric_label = display_name


@functools.cache
def _datasets() -> dict[str, str]:
    from benchmark.datasets import DATASETS

    return {entry.name: entry.display for entry in DATASETS}


def loss_name(name: str) -> str:
    """Return the display name of a registered loss: "SmoothAP"; other names are kept."""
    facts = load_catalogue().get(name)
    return facts.display if facts else name


def loss_label(label: str, study: Study) -> str:
    """Return the display name of a variant: "SmoothAP", or "SmoothAP (tau=0.1)".

    Hyperparameters are named where they differ from the loss's defaults, without the underscore
    that keeps one from being a word of Python (lambda). A label that no block of the study asks for
    (of a frozen or published row) is taken for the name of a loss.
    """
    variant = study.losses.get(label)
    if variant is None or label == variant.name:
        return loss_name(label)
    facts = load_catalogue().get(variant.name)
    defaults = defaults_of(facts.config) if facts else {}
    other = {
        key.rstrip("_"): value
        for key, value in variant.params.items()
        if value != defaults.get(key, object()) and key not in variant.recipe
    }
    # Two variants with the same numbers still need two names.
    told = ", ".join(f"{key}={value}" for key, value in other.items()) or label
    return f"{loss_name(variant.name)} ({told})"


def loss_order(labels: Iterable[str], study: Study) -> list[str]:
    """Return the labels in the study's order, others last in alphabetical order."""
    order = {label: index for index, label in enumerate(study.losses)}
    return sorted(set(labels), key=lambda label: (order.get(label, len(order)), label))


def metric_order(metrics: Iterable[str], study: Study) -> list[str]:
    """Return the study's metrics, in its order, as far as they are among ``metrics``."""
    present = set(metrics)
    return [metric for metric in study.metrics if metric in present]


def dataset_name(label: str) -> str:
    """Return the display name of a registered dataset: "iNaturalist-2018"; others are kept."""
    return _datasets().get(label, label)


def dataset_label(dataset: str, setting: str = "", split: str = "test") -> str:
    """Return where a number was measured: "Glyphs-1k · test_resnet".

    The split is named when it is not the test set itself.
    """
    parts = [dataset_name(dataset), setting, "" if split == "test" else split]
    return " · ".join(part for part in parts if part)


def condition_label(dataset: str, setting: str, split: str, batch_size: int) -> str:
    """Return the heading of runs that are compared with each other."""
    return f"{dataset_label(dataset, setting, split)} · batch size {batch_size}"


def confidence(study: Study) -> str:
    """Return the confidence of the study's intervals: "95%"."""
    return f"{100 * (1 - study.comparison.alpha):g}%"
