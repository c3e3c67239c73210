"""Intervals of a score over classes: the formula, where there is none, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates.class_intervals import (
    CHOSEN,
    COVERAGE,
    WIDTH,
    WORLDS,
    Beta,
    fewest_classes,
    interval_table,
)
from pages import ROOT
from scipy import special, stats

from benchmark.stats.queries import FEWEST_CLASSES, interval_over_classes, logit_interval


def test_classes_of_one_size_give_the_t_interval_of_their_means_on_the_logit_scale():
    means = np.random.default_rng(0).beta(4, 2, 30)
    scores = np.repeat(means, 4)
    found = interval_over_classes(scores, np.repeat(np.arange(30), 4))
    mean = means.mean()
    half = stats.t.ppf(0.975, 29) * stats.sem(means) / (mean * (1 - mean))
    expected = special.expit(special.logit(mean) + np.array([-half, half]))
    assert found == pytest.approx(tuple(expected))


def test_one_large_class_takes_degrees_of_freedom():
    """21 classes, of which one has half of the queries, count as 4 / (1 + 1/20) classes."""
    sizes = np.array([20.0, *[1.0] * 20])
    sums = np.array([15.0, *[1.0, 0.0] * 10])
    low, high = logit_interval(sums, sizes)
    score = sums.sum() / 40
    without = (sums.sum() - sums) / (40 - sizes)
    se = np.sqrt(20 / 21 * ((without - without.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, 4 / (1 + 1 / 20) - 1) * se / (score * (1 - score))
    width = special.logit(high) - special.logit(low)
    assert width == pytest.approx(2 * half)


def test_there_is_no_interval_for_few_classes_or_for_classes_that_score_the_same():
    scores = np.random.default_rng(0).random(FEWEST_CLASSES)
    few = np.arange(FEWEST_CLASSES)
    assert np.isfinite(interval_over_classes(scores, few)).all()
    assert np.isnan(interval_over_classes(scores[1:], few[1:])).all()
    for same in (np.ones(30), np.zeros(30), np.full(30, 0.7)):
        assert np.isnan(interval_over_classes(same, np.arange(30))).all()


@pytest.mark.rates
def test_the_interval_keeps_its_limits_and_the_percentile_bootstrap_does_not():
    names = ["R@1 95, sd 8", "mAP 60, sd 20, large classes easier", "embedded mAP@R"]
    table = interval_table(400, (10, 20), {name: WORLDS[name] for name in names})
    shown = table[(table["method"] == CHOSEN) & (table["classes"] == 20)]
    # 400 draws: two Monte Carlo errors are 2.7 points
    assert (shown["coverage"] > COVERAGE - 0.027).all()
    assert (shown["width"] < WIDTH).all()
    percentile = table[(table["method"] == "percentile") & (table["classes"] == 10)]
    assert (percentile["coverage"] < COVERAGE - 0.027).any()
    assert np.isinf(fewest_classes(table)["percentile"])


@pytest.mark.rates
def test_the_page_has_the_rates_of_twenty_classes():
    page = (ROOT / "docs" / "background" / "error_rates.md").read_text(encoding="utf-8")
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in page.splitlines()}
    worlds = {name: world for name, world in WORLDS.items() if isinstance(world, Beta)}
    table = interval_table(2000, (FEWEST_CLASSES,), worlds, resampled=False)
    for row in table[table["method"] == CHOSEN].itertuples():
        shown = lines[row.world].split(" | ")[3]
        assert shown == f"{100 * row.coverage:.1f}, {row.width:.2f}", row.world
        assert row.coverage >= COVERAGE
