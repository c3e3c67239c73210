"""What planned seeds will see: against simulation, and at the level after Holm."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates.rule import PAIRED, World, drift_seen, reproduced

from benchmark.stats.planning import (
    Design,
    chance_to_confirm,
    detectable_shift,
    power,
    seeds_needed,
    smallest_drift,
)

TABLES = 1500


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_smallest_drift_is_seen_four_times_out_of_five_in_simulated_tables(seeds):
    design = Design(seeds, 0.3, family=30, sisters=29)
    seen = drift_seen(World(seeds=seeds), TABLES, truth=smallest_drift(design))
    # The forecast is on the safe side by up to 5 points: the sisters' spread is nearly exact.
    assert seen.high > 0.8
    assert seen.value < 0.9


def test_paired_runs_need_no_share_of_the_references_error():
    design = Design(3, 0.3 * np.sqrt(2), family=30, sisters=29, reference_runs=None)
    seen = drift_seen(World(seeds=3, reference=PAIRED), TABLES, truth=smallest_drift(design))
    assert seen.value == pytest.approx(0.8, abs=0.09)


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_chance_to_confirm_is_that_of_simulated_tables(seeds):
    found = chance_to_confirm(Design(seeds, 0.3, family=30, sisters=29))
    assert found == pytest.approx(reproduced(World(seeds=seeds), 600, 0.0).value, abs=0.03)


@pytest.mark.parametrize("family", [6, 14, 56])
def test_what_is_called_detectable_counts_the_family(family):
    # A paired test that ignores its family promises 80% and keeps 36, 20 and 6.5%.
    alone = detectable_shift(4.0) / 5**0.5
    design = Design(5, 1.0, family=family, reference_runs=None, margin=0.0)
    assert power(design, alone) < 0.4
    assert power(design, smallest_drift(design)) == pytest.approx(0.8, abs=1e-6)


def test_a_family_of_one_without_sisters_equals_the_plain_paired_test():
    design = Design(5, 1.0, reference_runs=None, margin=0.0)
    assert smallest_drift(design) == pytest.approx(detectable_shift(4.0) / 5**0.5, rel=1e-3)


def test_no_number_of_seeds_calls_a_drift_inside_the_margin():
    assert seeds_needed(Design(3, 0.3, family=30, sisters=29), 1.0) is None


def test_one_printed_value_limits_what_any_number_of_seeds_can_say():
    design = Design(3, 0.5, family=30, sisters=29)
    assert seeds_needed(design, 2.0) is None
    assert seeds_needed(Design(3, 0.5, family=30, sisters=29, reference_runs=5), 2.5) is not None


def test_seeds_needed_are_the_fewest():
    design = Design(3, 0.3, family=30, sisters=29)
    seeds = seeds_needed(design, 3.0)
    enough, fewer = (Design(n, 0.3, family=30, sisters=29) for n in (seeds, seeds - 1))
    assert power(enough, 3.0) >= 0.8 > power(fewer, 3.0)


def test_one_seed_sees_nothing():
    assert np.isnan(smallest_drift(Design(1, 0.3)))
