"""The functions that stand for the step, as read off the losses, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.analyses.surrogates import (
    SHIFTS,
    WIDTH,
    bin_share,
    curves,
    exponential,
    interpolation,
    linear,
    pair,
    step_of,
)
from benchmark.losses import create_loss

GRID = np.linspace(-0.15, 0.15, 61)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_smooth_ap_puts_a_sigmoid_in_place_of_the_step():
    value, slope = step_of(create_loss("smooth_ap", tau=0.05), GRID)
    expected = sigmoid(GRID / 0.05)
    assert value == pytest.approx(expected, rel=1e-9)
    assert slope == pytest.approx(expected * (1 - expected) / 0.05, rel=1e-9)


def test_sup_ap_puts_h_minus_in_place_of_the_step():
    value, _ = step_of(create_loss("sup_ap"), GRID)
    upper = np.where(GRID > 0.05, 100 * (GRID - 0.05) + sigmoid(5), sigmoid(GRID / 0.01)) + 0.5
    assert value == pytest.approx(np.where(GRID < 0, sigmoid(GRID / 0.01), upper), rel=1e-6)


def test_the_shares_of_all_soft_bins_add_up_to_one():
    scores = np.linspace(-1, 1, 201)
    assert sum(bin_share(scores, 11, index)[0] for index in range(11)) == pytest.approx(
        np.ones(201)
    )


def test_soft_bins_are_those_of_the_loss():
    # alone with one negative, the histogram AP has a closed form in the shares of both scores
    scores = np.array([0.33, 0.41])
    shares = np.array(
        [[bin_share(np.array([s]), 11, index)[0][0] for index in range(11)] for s in scores]
    )
    running = shares.cumsum(axis=1)
    total = np.maximum(running.sum(axis=0), 1e-300)
    expected = 1 - np.sum(shares[0] * running[0] / total)
    found = pair(
        create_loss("fast_ap", bins=10), np.array([scores[1] - scores[0]]), positive=scores[0]
    )[0][0]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("step", [0.05, 0.2])
def test_blackbox_ap_interpolates_the_step_over_half_of_lambda(step):
    grid = np.linspace(-0.15, 0.15, 6001)
    value, slope = interpolation(create_loss("blackbox_ap", lambda_val=step, margin=0.0), grid)
    assert np.all(slope[grid < -1e-9] == 0)
    assert value == pytest.approx(np.clip(grid / (step / 2), 0, 1), abs=0.01)


def test_every_panel_has_its_curves():
    count = curves().groupby("panel")["curve"].nunique()
    assert count.to_dict() == {
        "SmoothAP": 3,
        "relaxations": 2,
        "SupAP": 3,
        "soft bins": 6,
        "BlackBoxAP": 3,
    }


def test_a_linear_relaxation_does_not_see_a_change_of_order():
    far, near = (linear(np.array(shift))[0] for shift in SHIFTS)
    assert far[0] - far[1] == pytest.approx(near[0] - near[1]) == pytest.approx(3.0)
    for relaxation in (linear, exponential):
        value, slope = relaxation(GRID)
        assert np.all(value >= (GRID > 0)) and value[GRID.searchsorted(0.0)] == pytest.approx(1)
        inner = np.abs(GRID + WIDTH) > 0.01  # away from the corner of the hinge
        assert slope[inner] == pytest.approx(np.gradient(value, GRID)[inner], rel=0.03, abs=1e-9)
