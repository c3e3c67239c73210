"""Names of metrics: which exist and how they are shown."""

from __future__ import annotations

import pytest

from benchmark.metrics.metric import METRICS, check_metric, display_name, metric_of


@pytest.mark.parametrize(
    ("name", "shown", "family"),
    [
        ("recall_at_1", "R@1", "recall_at_k"),
        ("recall_at_100", "R@100", "recall_at_k"),
        ("map_at_r", "mAP@R", "map_at_r"),
        ("map", "mAP", "map"),
    ],
)
def test_a_metric_has_a_family_and_a_display_name(name, shown, family):
    assert check_metric(name) is None
    assert display_name(name) == shown
    assert metric_of(name) is METRICS[family]


@pytest.mark.parametrize(
    "name",
    [
        "recall_at_0",
        "recall_at_01",
        "recall_at_1\u0663",
        "recall_at_1000000000",
        "recall_at_",
        "recall@1",
        "map_at_k",
        "maps",
        "",
        3,
    ],
)
def test_an_unknown_metric_is_named_with_those_that_exist(name):
    problem = check_metric(name)
    assert f"unknown metric '{name}'" in problem
    assert "recall_at_K" in problem and "map_at_r" in problem


def test_k_has_nine_digits_at_most():
    assert check_metric("recall_at_999999999") is None
    assert check_metric("recall_at_9999999999").startswith("unknown metric 'recall_at_9999999999'")
