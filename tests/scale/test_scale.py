"""The scale scripts at a size that takes a minute: the same checks as at full size."""

from __future__ import annotations

import pytest
import ten_thousand_runs
import through_the_workflow

pytestmark = pytest.mark.stress


def test_a_tenth_of_the_runs_fails_is_named_and_done_again_alone():
    numbers = through_the_workflow.measure(losses=10, seeds=6)
    assert numbers["wrong"] == [], numbers
    assert numbers["runs"] == 60 and numbers["failed at first"] == numbers["trained again"] > 0


def test_every_step_takes_thousands_of_runs_in_little_memory():
    found = ten_thousand_runs.measure(losses=20, seeds=25)
    assert set(ten_thousand_runs.STEPS) < set(found)
    assert max(megabytes for _, megabytes in found.values()) < ten_thousand_runs.MEMORY_MB
