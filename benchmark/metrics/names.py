"""Names of the retrieval metrics: what is allowed, how each is shown, which way is better."""

import re
from dataclasses import dataclass

from benchmark.core.errors import unknown_name


@dataclass(frozen=True)
class Metric:
    """A family of metrics: ``pattern`` of its names, ``display`` a template of the groups."""

    family: str
    pattern: str
    display: str
    description: str
    unit: str = "percent"
    higher_is_better: bool = True


METRICS: dict[str, Metric] = {
    metric.family: metric
    for metric in (
        Metric(
            "recall_at_k",
            r"recall_at_([1-9][0-9]{0,8})",
            r"R@\1",
            "share of queries with a positive among the K nearest items",
        ),
        Metric(
            "map_at_r",
            "map_at_r",
            "mAP@R",
            "precision averaged over the first R positions, R = number of the query's positives",
        ),
        Metric(
            "map",
            "map",
            "mAP",
            "average precision over all positives of the query (landmark sets: by trapezoids, "
            "without junk images)",
        ),
    )
}

_FORMS = ("recall_at_K (K = 1, 2, ..., 999999999)", "map_at_r", "map")


def metric_of(name: str) -> Metric | None:
    """Return the family that ``name`` belongs to, or None for a name that is no metric."""
    return next((metric for metric in METRICS.values() if re.fullmatch(metric.pattern, name)), None)


def check_metric(name: str) -> str | None:
    """Return what is wrong with a metric's name, or None when it is one."""
    if isinstance(name, str) and metric_of(name):
        return None
    return unknown_name("metric", name, _FORMS)


def display_name(name: str) -> str:
    """Return the name as tables show it: ``recall_at_10`` is ``R@10``; others stay."""
    metric = metric_of(name)
    return re.sub(metric.pattern, metric.display, name) if metric else name
