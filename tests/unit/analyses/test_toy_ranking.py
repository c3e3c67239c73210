"""What ROADMAP claims of its losses and SmoothAP, on the toy ranking and on random ones."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.analyses.gap import average_precision, batch_ap, value_and_gradient
from benchmark.analyses.toy_ranking import (
    POSITIVE,
    SCORES,
    STEPPED,
    outcome,
    toy_losses,
)

LOSSES = toy_losses()
TOY = np.array(list(SCORES.values()))


def by_definition(positive, negative):
    ranks = [
        (np.sum(positive >= s), np.sum(positive >= s) + np.sum(negative >= s)) for s in positive
    ]
    return np.mean([above / rank for above, rank in ranks])


def test_the_exact_ap_equals_its_definition_with_ties_at_the_worst_rank():
    rng = np.random.default_rng(0)
    for _ in range(50):
        positive, negative = rng.integers(0, 6, 4) / 5, rng.integers(0, 6, 9) / 5
        assert average_precision(positive, negative) == pytest.approx(
            by_definition(positive, negative), abs=1e-12
        )


def test_the_ap_of_a_batch_leaves_the_query_out_and_is_nan_without_a_positive():
    scores = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.1], [0.9, 0.1, 1.0]])
    found = batch_ap(scores, np.array([0, 0, 1]))
    assert found[:2].tolist() == [0.5, 1.0]
    assert np.isnan(found[2])


def test_smooth_ap_gives_the_two_positives_opposite_gradients_and_the_negative_none():
    value, gradient = value_and_gradient(LOSSES["SmoothAP"], TOY, POSITIVE)
    assert gradient[0] < 0 < gradient[1]
    assert gradient[0] == pytest.approx(-gradient[1], rel=1e-3)
    assert abs(gradient[2]) < 1e-3 * abs(gradient[0])
    assert value < 1 - by_definition(TOY[POSITIVE], TOY[~POSITIVE])


def test_with_a_true_step_for_positives_only_the_sigmoid_of_negatives_is_left():
    value, gradient = value_and_gradient(LOSSES[STEPPED], TOY, POSITIVE)
    gaps = 1 / (1 + np.exp(-(TOY[2] - TOY[:2]) / 0.01))
    assert value == pytest.approx(1 - np.mean([2 / (2 + gaps[0]), 1 / (1 + gaps[1])]), abs=1e-12)
    assert np.abs(gradient).max() < 1e-3


def test_sup_ap_moves_all_three_the_right_way():
    gradient = value_and_gradient(LOSSES["SupAP"], TOY, POSITIVE)[1]
    assert np.sign(gradient).tolist() == [-1, -1, 1]
    assert np.abs(gradient).min() > 0.1


def test_sup_ap_is_never_below_the_ap_loss_and_never_leaves_a_misranked_negative_alone():
    found = outcome(LOSSES["SupAP"], 500, seed=1)
    assert found.below == 0
    assert found.smallest > 0
    # the same check does find losses that lack the properties
    smooth = outcome(LOSSES["SmoothAP"], 500, seed=1)
    assert smooth.below > 0 and smooth.vanished > 0


def test_sup_ap_is_above_the_ap_loss_at_ties_too():
    scores, positive = np.full(6, 0.5), np.array([True, True, False, False, False, False])
    value = value_and_gradient(LOSSES["SupAP"], scores, positive)[0]
    assert value >= 1 - by_definition(scores[positive], scores[~positive]) - 1e-12
