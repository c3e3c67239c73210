"""The scale script at a size that takes a minute: the same checks as at full size."""

from __future__ import annotations

import pytest
import scale

pytestmark = pytest.mark.stress


def test_a_tenth_of_the_runs_fails_is_named_and_done_again_alone():
    numbers = scale.through_the_workflow(losses=10, seeds=6)
    assert numbers["wrong"] == [], numbers
    assert numbers["runs"] == 60
    assert numbers["failed at first"] == numbers["trained again"] > 0


def test_every_step_takes_thousands_of_runs_in_little_memory():
    assert scale.within_bounds(scale.planned(losses=20, seeds=25))


def test_ten_times_the_runs_cost_about_ten_times_as_much():
    assert scale.grows_little(scale.planned(losses=20, seeds=3), scale.planned(losses=20, seeds=30))


def test_scheduling_a_run_costs_little_where_hundreds_are_ready():
    assert scale.head_seconds(losses=20, seeds=20) <= scale.HEAD_SECONDS
