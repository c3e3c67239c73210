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
