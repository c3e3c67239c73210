"""The decomposability gap and its bounds, against definitions and all small rankings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from benchmark.analyses.decomposability_gap import (
    Batch,
    calibrated_bounds,
    draw_batches,
    gap,
    plain_bound,
)

ALPHA = 0.9
BETA = 0.6


def batch(positive, negative):
    return Batch(np.array(positive, float), np.array(negative, float))


def perfect_batches(rng, count, positives, negatives):
    """Returns batches that are each ranked perfectly, on scores of their own level."""
    found = []
    for _ in range(count):
        lowest = rng.uniform(0, 0.8)
        scores = np.sort(rng.uniform(lowest, 1.0, positives + negatives))[::-1]
        found.append(batch(scores[:positives], scores[positives:]))
    return found


def test_the_gap_is_mean_ap_in_batches_minus_ap_over_all_and_eq_8_that_of_juxtaposed_ones():
    batches = [batch([0.9], [0.8]), batch([0.5], [0.4])]
    # each batch has AP 1; together the second positive is third: (1 + 2/3) / 2
    assert gap(batches) == pytest.approx(1 - (1 + 2 / 3) / 2)
    batches = [
        batch([0.9, 0.85], [0.8, 0.75]),
        batch([0.7, 0.65], [0.6, 0.5]),
        batch([0.4, 0.3], [0.2, 0.1]),
    ]
    assert gap(batches) == pytest.approx(plain_bound(batches), abs=1e-12)


def test_eq_8_holds_for_every_interleaving_of_two_small_batches():
    worst = -1.0
    for places in set(permutations([0, 0, 0, 0, 1, 1, 1, 1])):
        scores = np.linspace(1, 0, 8)
        first = scores[np.array(places) == 0]
        second = scores[np.array(places) == 1]
        batches = [batch(first[:2], first[2:]), batch(second[:2], second[2:])]
        assert gap(batches) <= plain_bound(batches) + 1e-12
        worst = max(worst, gap(batches))
    assert worst == pytest.approx(plain_bound(batches), abs=1e-12)


def test_both_bounds_hold_on_random_perfectly_ranked_batches():
    rng = np.random.default_rng(0)
    for _ in range(300):
        batches = perfect_batches(rng, rng.integers(2, 5), rng.integers(1, 4), rng.integers(1, 8))
        assert all(each.perfect for each in batches)
        _, calibrated = calibrated_bounds(batches, ALPHA, BETA)
        assert gap(batches) >= -1e-12
        assert gap(batches) <= plain_bound(batches) + 1e-12
        assert gap(batches) <= calibrated + 1e-12


def test_eq_9_fails_in_one_order_of_the_batches_and_holds_in_the_other():
    weak = batch([0.5], [0.4])
    strong = batch([0.95], [0.93])
    drawn, worst = calibrated_bounds([weak, strong], ALPHA, BETA)
    other, also_worst = calibrated_bounds([strong, weak], ALPHA, BETA)
    found = gap([weak, strong])
    assert gap([strong, weak]) == found
    assert drawn + 0.1 < found
    assert found <= other + 1e-12
    assert worst == other
    assert also_worst == other


def test_eq_9_is_zero_when_all_scores_are_calibrated():
    batches = [batch([0.95, 0.92], [0.3, 0.1]), batch([0.97, 0.9], [0.5, 0.2])]
    assert calibrated_bounds(batches, ALPHA, BETA) == (0, 0)
    assert gap(batches) == 0
    assert plain_bound(batches) > 0


def test_eq_9_is_not_always_below_eq_8():
    # One good positive behind a bad negative: Eq. 9 forgets the positives of earlier batches that
    # are not good.
    batches = [batch([0.8, 0.8], [0.7]), batch([0.95, 0.95], [0.7])]
    _, calibrated = calibrated_bounds(batches, ALPHA, BETA)
    assert calibrated > plain_bound(batches)


def test_drawn_batches_are_disjoint_and_of_one_size_where_two_fit():
    rng = np.random.default_rng(0)
    positives = np.arange(9.0)
    negatives = np.arange(100.0, 200.0)
    batches = draw_batches(rng, Batch(positives, negatives), 16, 3)
    scores = []
    for drawn in batches:
        assert len(drawn.positive) == 3
        assert len(drawn.negative) == 13
        scores += [*drawn.positive, *drawn.negative]
    assert len(set(scores)) == 48
    assert draw_batches(rng, Batch(positives[:5], negatives), 16, 3) == []
    assert draw_batches(rng, Batch(positives, negatives[:20]), 16, 3) == []
