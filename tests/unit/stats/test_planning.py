"""What planned seeds will see, against simulation; the levels of planned looks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from error_rates.rule import PAIRED, World, any_drifted, draw, drift_seen, evidence, reproduced
from made_up_results import made_up_study
from scipy import stats

from benchmark.stats import planning
from benchmark.stats.planning import (
    Design,
    at_level,
    chance_to_confirm,
    chance_to_stand,
    detectable_shift,
    level_of,
    pocock,
    power,
    seeds_needed,
    smallest_drift,
)
from benchmark.stats.reproduction import (
    DRIFTED,
    LABORATORY,
    MARKS,
    SPREAD,
    TAILS,
    compare,
    marks,
)

TABLES = 1500


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_smallest_drift_is_seen_four_times_out_of_five_in_simulated_tables(seeds):
    design = Design(seeds, 0.3, family=30, sisters=29)
    seen = drift_seen(World(seeds=seeds), TABLES, truth=smallest_drift(design))
    # The forecast is on the safe side by up to 5 points: the sisters' spread is nearly exact.
    assert seen.high > 0.8
    assert seen.value < 0.9


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_chance_to_confirm_is_that_of_simulated_tables(seeds):
    found = chance_to_confirm(Design(seeds, 0.3, family=30, sisters=29))
    simulated = reproduced(World(seeds=seeds), 600, 0.0)
    assert found == pytest.approx(simulated.value, abs=0.03)


@pytest.mark.parametrize(
    ("drift", "sigma"),
    [
        (3.0, 0.2),
        (4.0, 0.3),
    ],
)
def test_the_chance_to_stand_is_that_of_simulated_tables_under_all_marks(drift, sigma):
    world = World(seeds=5, sigma=sigma)
    truths = np.r_[np.zeros(29), drift]
    numbers = evidence(world, *draw(world, truths, TABLES))
    is_called = compare(numbers).verdict == DRIFTED
    for mark in marks(numbers).values():
        is_called &= mark.verdict == DRIFTED
    seen = is_called[:, -1].mean()
    design = Design(5, sigma, family=30, sisters=29)
    chance = chance_to_stand(design, drift)
    assert chance < power(design, drift)
    assert seen - 0.07 < chance < seen


@pytest.mark.parametrize("seeds", [2, 3, 10])
@pytest.mark.parametrize("spread", [0.05, 0.3, 1.5])
@pytest.mark.parametrize("mark", [LABORATORY, SPREAD, TAILS])
def test_no_assumption_makes_a_drift_more_likely_to_be_called(mark, spread, seeds, monkeypatch):
    design = Design(seeds, spread, reference_runs=5)
    asked = {name: name == mark for name in MARKS}
    monkeypatch.setattr(planning, "applies", lambda reference_n: asked)
    alone = chance_to_stand(design, 3.0)
    monkeypatch.setattr(planning, "world_of", lambda evidence, mark: {})
    assert alone <= chance_to_stand(design, 3.0)


@pytest.mark.parametrize("family", [6, 14, 56])
def test_what_is_called_detectable_counts_the_family(family):
    # A paired test that ignores its family promises 80% and keeps 36, 20 and 6.5%.
    critical = stats.t.isf(0.025 / family, 4.0)
    assert stats.nct.sf(critical, 4.0, detectable_shift(4.0)) < 0.4
    shift = detectable_shift(4.0, 0.05 / family)
    assert stats.nct.sf(critical, 4.0, shift) == pytest.approx(0.8, abs=1e-6)


def test_seeds_needed_are_the_fewest_and_none_where_the_printed_value_is_too_uncertain():
    design = Design(3, 0.3, family=30, sisters=29)
    seeds = seeds_needed(design, 3.0)
    enough, fewer = (dataclasses.replace(design, seeds=n) for n in (seeds, seeds - 1))
    assert power(enough, 3.0) >= 0.8 > power(fewer, 3.0)
    assert seeds_needed(design, 1.0) is None, "a drift inside the margin is none"
    wide = dataclasses.replace(design, spread=0.5)
    assert seeds_needed(wide, 2.0) is None
    assert seeds_needed(dataclasses.replace(wide, reference_runs=5), 2.5) is not None
    assert np.isnan(smallest_drift(Design(1, 0.3))), "one seed sees nothing"


LOOKS = (3, 5, 10)


def test_two_equal_stages_have_pococks_constant():
    # Pocock (1977): two looks at a two-sided 5% test, each at 0.0294; here 2.5% for each side.
    assert pocock((5, 10), 0.025) == pytest.approx(0.0294 / 2, abs=2e-4)
    assert 0.05 / 3 < pocock(LOOKS) < pocock((5,), 0.05) == 0.05


def test_a_study_of_one_look_tests_at_the_whole_level_and_one_of_three_at_less():
    one = made_up_study()
    three = dataclasses.replace(one, looks=(3, 5, 10))
    assert level_of(one) == 0.05
    assert level_of(three) == pocock(LOOKS)
    assert at_level(one).comparison.alpha == 0.05
    assert at_level(three).comparison.alpha == pytest.approx(2 * pocock(LOOKS, 0.025))


def test_planned_looks_keep_the_error_that_unplanned_ones_exceed():
    world = World(reference=PAIRED, sigma=0.1, seeds=10)
    planned = {"looks": LOOKS, "level": pocock(LOOKS)}
    assert reproduced(world, 300, 1.0, **planned).low <= 0.05
    assert reproduced(world, 300, 1.0, looks=LOOKS, level=0.05).low > 0.05
    assert any_drifted(world, 300, **planned).low <= 0.05


def test_the_level_holds_for_independent_normal_looks():
    sums = np.random.default_rng(0).standard_normal((200_000, 10)).cumsum(axis=1)
    z = sums[:, [2, 4, 9]] / np.sqrt(LOOKS)
    is_beyond = z > stats.norm.isf(pocock(LOOKS))
    rejected = is_beyond.any(axis=1)
    assert rejected.mean() == pytest.approx(0.05, abs=0.002)
