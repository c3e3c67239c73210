"""Intervals over queries: classes are drawn whole."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.stats.queries import query_interval


def test_the_mean_is_over_queries_and_inside_its_interval():
    scores, classes = np.array([1.0, 0.0, 1.0, 1.0, 0.0]), np.array([0, 0, 1, 1, 2])
    found = query_interval(scores, classes)
    assert (found.mean, found.queries, found.classes) == (0.6, 5, 3)
    assert found.low <= 0.6 <= found.high


def test_classes_whose_queries_agree_widen_the_interval():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 25)
    alone = rng.random(1000) < 0.6
    together = np.repeat(rng.random(40) < 0.6, 25)
    narrow, wide = (query_interval(each.astype(float), classes) for each in (alone, together))
    # 25 equal queries carry the information of one: 5 times the width.
    ratio = (wide.high - wide.low) / (narrow.high - narrow.low)
    assert 3.5 < ratio < 7


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        of_class = rng.beta(4, 2, 60)
        scores = (rng.random((60, 8)) < of_class[:, None]).astype(float)
        found = query_interval(scores.ravel(), np.repeat(np.arange(60), 8))
        covered += found.low <= 4 / 6 <= found.high
    assert 0.88 <= covered / 200 <= 0.99  # 95% in theory, Monte Carlo error 1.5 points


def test_one_class_has_no_interval():
    found = query_interval(np.array([1.0, 0.0]), np.array([3, 3]))
    assert np.isnan([found.low, found.high]).all()


def test_equal_scores_have_equal_intervals():
    scores, classes = np.random.default_rng(0).random(50), np.repeat(np.arange(10), 5)
    assert query_interval(scores, classes) == query_interval(scores.copy(), classes)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_more_confidence_is_wider(confidence):
    scores, classes = np.random.default_rng(0).random(100), np.repeat(np.arange(20), 5)
    wide = query_interval(scores, classes, 0.99)
    found = query_interval(scores, classes, confidence)
    assert wide.high - wide.low > found.high - found.low
