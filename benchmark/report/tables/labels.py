"""The names that people read, for losses, metrics, datasets and run groups; the same in every table and figure."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from benchmark.metrics.names import display_name

if TYPE_CHECKING:
    from benchmark.losses.catalogue import LossFacts


@functools.lru_cache(maxsize=1)
def _catalogue() -> dict[str, LossFacts]:
    from benchmark.losses.catalogue import load_catalogue

    return load_catalogue()


def loss_label(label: str, study: Any) -> str:
    """Returns the display name of a variant: "SmoothAP", or "SmoothAP (tau=0.1)" for a named variant.

    Hyperparameters are printed where they differ from the loss's defaults, without the underscore that keeps one
    from being a word of Python (lambda). A label that no block of the study asks for (a frozen or published row)
    falls back to the catalogue, then to itself.
    """
    variant = study.losses.get(label)
    name = variant.name if variant else label
    facts = _catalogue().get(name)
    display = facts.display if facts else label
    if variant is None or label == name:
        return display
    fields = facts.schema["properties"] if facts else {}
    other = {
        key.rstrip("_"): value
        for key, value in variant.params.items()
        if value != fields.get(key, {}).get("default", object()) and key not in variant.recipe
    }
    # Two variants with the same numbers still need two names.
    return f"{display} ({', '.join(f'{k}={v}' for k, v in other.items()) or label})"


def loss_order(labels: Any, study: Any) -> list[str]:
    """Returns the labels in the study's order, unknown ones last in alphabetical order."""
    order = {label: index for index, label in enumerate(study.losses)}
    return sorted(set(labels), key=lambda label: (order.get(label, len(order)), label))


def metric_label(metric: str) -> str:
    """Returns "R@1" for ``recall_at_1``, "mAP@R" for ``map_at_r``; other names are kept."""
    return display_name(metric)


def metric_order(metrics: Any, study: Any) -> list[str]:
    """Returns the metrics that are shown: the study's, in its order, as far as they occur."""
    found = set(metrics)
    return [metric for metric in study.metrics if metric in found]


def place_label(dataset: str, setting: str, split: str = "test") -> str:
    """Returns where a number was measured: "glyphs_1k · resnet10t", with the protocol when it is not "test"."""
    parts = [dataset, setting] if setting else [dataset]
    return " · ".join(parts if split == "test" else [*parts, split])


def group_label(dataset: str, setting: str, batch_size: int, split: str = "test") -> str:
    """Returns the heading of one group of runs that are compared with each other."""
    return f"{place_label(dataset, setting, split)} · batch size {batch_size}"


def confidence(study: Any) -> str:
    """Returns the confidence of the study's intervals: "95%"."""
    return f"{100 * (1 - study.comparison.alpha):g}%"
