"""The small examples of papers, the toy ranking and the surrogates, against numbers by hand."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.special import expit

from benchmark.analyses import complexity
from benchmark.analyses.complexity import beyond, powers
from benchmark.analyses.decomposability_gap import (
    average_precision,
    batch_ap,
    gap,
    mean_ap,
    plain_bound,
    value_and_gradient,
)
from benchmark.analyses.worked_examples import (
    AUPR,
    BATCHES,
    DELTA,
    NEAR,
    NO_GRADIENT,
    PANELS,
    RELAXATIONS,
    SCORES,
    SHIFTS,
    STEPPED,
    TOY_POSITIVE,
    WIDTH,
    algorithm_1,
    bin_share,
    curves,
    distance_to_area,
    gaps,
    interpolation,
    one_bin,
    outcome,
    pair,
    slope,
    step_of,
    toy_losses,
    toy_ranking,
    violations,
    worked_examples,
)
from benchmark.core.code_version import PACKAGE
from benchmark.losses import create_loss


@pytest.fixture(scope="module")
def examples():
    return worked_examples(None)


def test_the_toy_batches_are_perfect_and_reach_the_bound_of_eq_8(examples):
    assert mean_ap(BATCHES) == 1
    whole = (1 + 1 + 3 / 5 + 4 / 6) / 4
    assert gap(BATCHES) == pytest.approx(1 - whole)
    assert plain_bound(BATCHES) == pytest.approx(1 - whole)
    assert examples.values["calibrations"] == "0.175 and 0.325"


def test_delta_is_where_the_sigmoid_lacks_epsilon():
    assert round(DELTA, 5) == 0.04595
    at = np.array([DELTA])
    assert expit(at / 0.01) == pytest.approx(0.99)
    step = 1e-7
    rise = expit((at + step) / 0.01) - expit((at - step) / 0.01)
    assert slope(at) == pytest.approx(rise / (2 * step), rel=1e-5)


def test_the_violating_terms_are_the_six_that_smooth_ap_lists():
    gains = violations()
    assert [*gains] == ["s4 - s1", "s4 - s2", "s4 - s3", "s5 - s3", "s6 - s3", "s7 - s3"]
    before = (1 + 2 / 3 + 3 / 4 + 4 / 8) / 4
    second_positive_first = (1 + 1 + 3 / 4 + 4 / 8) / 4
    last_positive_earlier = (1 + 2 / 3 + 3 / 4 + 4 / 7) / 4
    assert gains["s4 - s1"] == pytest.approx(second_positive_first - before)
    assert gains["s7 - s3"] == pytest.approx(last_positive_earlier - before)


def test_algorithm_1_as_printed_is_1_whatever_the_ranking(examples):
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    for positive in ([1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1]):
        assert algorithm_1(scores, np.array(positive)) == 1
    assert average_precision(scores[3:], scores[:3]) == 0.25
    assert not examples.claims["algorithm_1_ranks"]
    assert examples.values["least"] == 1
    assert examples.values["most"] == 1


def test_fine_bins_are_satisfied_with_a_small_margin_and_coarse_bins_are_not(examples):
    found = examples.data.query("panel == 'bins'").set_index("x")[["loss", "value"]]
    assert found.loc[10].min() > 0.01
    assert found.loc[80].tolist() == pytest.approx([0, 0], abs=1e-9)


def test_the_area_is_the_integral_over_recall():
    threshold = np.linspace(0, 1, 100_001)
    recall = 1 - threshold**2
    precision = recall[:-1] / (recall[:-1] + 1 - threshold[:-1])
    area = np.sum(precision * -np.diff(recall))
    assert area == pytest.approx(AUPR, abs=1e-4)
    # the error of a mean of independent terms: sixteen times the positives, a quarter
    assert distance_to_area(256) == pytest.approx(distance_to_area(16) / 4, rel=0.25)


def test_one_bin_is_the_share_of_positives_and_learns_nothing(examples):
    assert one_bin(NEAR) == 0.5
    assert one_bin(NEAR[::-1]) == 0.5
    assert examples.claims["one_bin_learns_nothing"]


def test_only_scores_beyond_alpha_and_beta_leave_a_gap(examples):
    assert np.abs(gaps(0.0)).max() == 0
    assert examples.values["some"] == gaps(0.4).mean()
    assert examples.values["some"] > 0.01


def test_every_statement_of_the_examples_holds_but_that_of_algorithm_1(examples):
    refuted = [name for name, holds in examples.claims.items() if not holds]
    assert refuted == ["algorithm_1_ranks"]


def test_a_power_is_the_slope_of_the_logarithms_in_each_round():
    rounds = pd.DataFrame({2: [3.0, 1.0], 4: [24.0, 4.0], 8: [192.0, 16.0]})
    assert powers(rounds) == pytest.approx([3, 2])


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([2.2, 2.2, 2.2], False),
        ([2.4, 2.4, 2.4], None),  # near the middle
        ([2.6, 2.6, 2.6], None),
        ([2.8, 2.9, 2.7], True),
        ([2.8, 3.4, 2.8], None),  # a busy machine
    ],
)
def test_a_power_between_two_and_one_of_a_busy_machine_decide_nothing(values, verdict):
    assert beyond(np.array(values), 2.5) is verdict


class PlantedLosses:
    """Losses whose processor time is a given function of the batch, on a clock of their own.

    ``slow`` multiplies the time of each call in turn: what else runs on the machine.
    """

    def __init__(self, cost, slow=(1.0,)):
        self.cost = cost
        self.slow = itertools.cycle(slow)
        self.now = 0.0

    def loss_of(self, name, bins=10):
        def loss(embeddings, labels):
            self.now += next(self.slow) * self.cost(name, len(labels), bins)
            return embeddings.sum()

        return loss

    def claims(self, monkeypatch):
        monkeypatch.setattr(complexity, "loss_of", self.loss_of)
        monkeypatch.setattr(complexity, "process_time", lambda: self.now)
        return complexity.complexity(SimpleNamespace(quick=True)).claims


def as_printed(name, size, bins):
    return {"fast_ap": size**2 * bins, "smooth_ap": size**3}.get(name, size**2 * np.log(size))


def quadratic_in_the_list(name, size, bins):
    return size**3 * bins if name == "fast_ap" else as_printed(name, size, bins)


def quadratic_in_the_bins(name, size, bins):
    return size**2 * bins**2 if name == "fast_ap" else as_printed(name, size, bins)


def test_times_as_printed_agree(monkeypatch):
    assert PlantedLosses(as_printed).claims(monkeypatch) == {
        "smooth_ap_grows_faster": True,
        "fast_ap_is_linear": True,
    }


@pytest.mark.parametrize("cost", [quadratic_in_the_list, quadratic_in_the_bins])
def test_a_quadratic_fast_ap_is_not_linear(monkeypatch, cost):
    assert PlantedLosses(cost).claims(monkeypatch)["fast_ap_is_linear"] is False


def test_what_slows_a_machine_for_a_while_decides_nothing_or_changes_nothing(monkeypatch):
    timed = len(complexity.SIZES) * len(complexity.TIMED) + len(complexity.BINS)
    one_round = [*[1.0] * timed, *[10.0] * timed]
    assert PlantedLosses(as_printed, one_round).claims(monkeypatch)["fast_ap_is_linear"]
    busy = np.random.default_rng(0).uniform(1, 30, 997)
    found = PlantedLosses(as_printed, busy).claims(monkeypatch)
    assert found == {"smooth_ap_grows_faster": None, "fast_ap_is_linear": None}


LOSSES = toy_losses()
TOY = np.array(list(SCORES.values()))


def by_definition(positive, negative):
    precisions = []
    for score in positive:
        above = np.sum(positive >= score)
        precisions.append(above / (above + np.sum(negative >= score)))
    return np.mean(precisions)


def test_the_exact_ap_equals_its_definition_with_ties_at_the_worst_rank():
    rng = np.random.default_rng(0)
    for _ in range(50):
        positive = rng.integers(0, 6, 4) / 5
        negative = rng.integers(0, 6, 9) / 5
        expected = by_definition(positive, negative)
        assert average_precision(positive, negative) == pytest.approx(expected, abs=1e-12)


def test_the_ap_of_a_batch_leaves_the_query_out_and_is_nan_without_a_positive():
    scores = np.array(
        [
            [1.0, 0.2, 0.9],
            [0.2, 1.0, 0.1],
            [0.9, 0.1, 1.0],
        ]
    )
    found = batch_ap(scores, np.array([0, 0, 1]))
    assert found[:2].tolist() == [0.5, 1.0]
    assert np.isnan(found[2])


def test_smooth_ap_gives_the_two_positives_opposite_gradients_and_the_negative_none():
    value, gradient = value_and_gradient(LOSSES["SmoothAP"], TOY, TOY_POSITIVE)
    first, second, negative = gradient
    assert first < 0
    assert second > 0
    assert first == pytest.approx(-second, rel=1e-3)
    assert abs(negative) < 1e-3 * abs(first)
    assert value < 1 - by_definition(TOY[TOY_POSITIVE], TOY[~TOY_POSITIVE])


def test_with_a_true_step_for_positives_only_the_sigmoid_of_negatives_is_left():
    value, gradient = value_and_gradient(LOSSES[STEPPED], TOY, TOY_POSITIVE)
    first, second = expit((TOY[2] - TOY[:2]) / 0.01)
    precisions = [2 / (2 + first), 1 / (1 + second)]
    assert value == pytest.approx(1 - np.mean(precisions), abs=1e-12)
    assert np.abs(gradient).max() < 1e-3


def test_sup_ap_is_never_below_the_ap_loss_and_never_leaves_a_misranked_negative_alone():
    _, gradient = value_and_gradient(LOSSES["SupAP"], TOY, TOY_POSITIVE)
    assert np.sign(gradient).tolist() == [-1, -1, 1]
    assert np.abs(gradient).min() > 0.1
    found = outcome(LOSSES["SupAP"], 500)
    assert found.below == 0
    assert found.smallest > 0
    # the same check does find losses that lack the properties
    smooth = outcome(LOSSES["SmoothAP"], 500)
    assert smooth.below > 0
    assert smooth.smallest == 0
    assert smooth.none > found.none
    assert found.none > 0


def test_what_counts_as_no_gradient_is_one_number_beside_every_sentence_that_says_so():
    words = yaml.safe_load((PACKAGE / "analyses" / "words.yaml").read_text("utf-8"))
    claims = [*words["toy_ranking"]["claims"].values(), *words["surrogates"]["claims"].values()]
    pattern = "no gradient|vanish|has none|operating region"
    said = [claim for claim in claims if re.search(pattern, claim[1])]
    assert len(said) == 6
    for _, claim, reason in said:
        assert "{none:g}" in reason, claim
    found = toy_ranking(SimpleNamespace(quick=True))
    assert found.values["none"] == NO_GRADIENT
    assert found.claims["vanishing_gradient"]
    assert found.claims["gradient_until_right"]


def test_sup_ap_is_above_the_ap_loss_at_ties_too():
    scores = np.full(6, 0.5)
    positive = np.arange(6) < 2
    value, _ = value_and_gradient(LOSSES["SupAP"], scores, positive)
    exact = 1 - by_definition(scores[positive], scores[~positive])
    assert value >= exact - 1e-12


GRID = np.linspace(-0.15, 0.15, 61)


def test_smooth_ap_puts_a_sigmoid_in_place_of_the_step():
    value, slope = step_of(create_loss("smooth_ap", tau=0.05), GRID)
    expected = expit(GRID / 0.05)
    assert value == pytest.approx(expected, rel=1e-9)
    assert slope == pytest.approx(expected * (1 - expected) / 0.05, rel=1e-9)


def test_sup_ap_puts_h_minus_in_place_of_the_step():
    value, _ = step_of(create_loss("sup_ap"), GRID)
    near = expit(GRID / 0.01)
    line = 100 * (GRID - 0.05) + expit(5)
    bound = np.where(GRID > 0.05, line, near) + 0.5
    assert value == pytest.approx(np.where(GRID < 0, near, bound), rel=1e-6)


def test_soft_bins_share_all_of_a_score_and_are_those_of_the_loss():
    shares = [bin_share(np.linspace(-1, 1, 201), 11, index)[0] for index in range(11)]
    assert sum(shares) == pytest.approx(np.ones(201))
    # alone with one negative, the histogram AP has a closed form in the shares of both scores
    scores = np.array([0.33, 0.41])
    of_bins = [bin_share(scores, 11, index)[0] for index in range(11)]
    positive, negative = np.transpose(of_bins)
    positives = positive.cumsum()
    items = np.maximum(positives + negative.cumsum(), 1e-300)
    expected = 1 - np.sum(positive * positives / items)
    found, _ = pair(create_loss("fast_ap", bins=10), scores[1:] - scores[0], positive=scores[0])
    assert found[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("step", [0.05, 0.2])
def test_blackbox_ap_interpolates_the_step_over_half_of_lambda(step):
    grid = np.linspace(-0.15, 0.15, 6001)
    loss = create_loss("blackbox_ap", lambda_val=step, margin=0.0)
    value, slope = interpolation(loss, grid)
    assert np.all(slope[grid < -1e-9] == 0)
    assert value == pytest.approx(np.clip(grid / (step / 2), 0, 1), abs=0.01)


def test_every_panel_has_its_curves():
    count = curves().groupby("panel", sort=False)["curve"].nunique()
    assert count.index.tolist() == list(PANELS)
    assert count.tolist() == [3, 2, 3, 6, 3]


def test_a_linear_relaxation_does_not_see_a_change_of_order():
    far, near = (RELAXATIONS["linear"](np.array(shift))[0] for shift in SHIFTS)
    assert far[0] - far[1] == pytest.approx(3.0)
    assert near[0] - near[1] == pytest.approx(3.0)
    for relaxation in RELAXATIONS.values():
        value, slope = relaxation(GRID)
        assert np.all(value >= (GRID > 0))
        assert value[GRID.searchsorted(0.0)] == pytest.approx(1)
        inner = np.abs(GRID + WIDTH) > 0.01  # away from the corner of the hinge
        assert slope[inner] == pytest.approx(np.gradient(value, GRID)[inner], rel=0.03, abs=1e-9)
