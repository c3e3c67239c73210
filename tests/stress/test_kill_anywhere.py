"""SIGKILL at random moments costs time and nothing else: every loss, memory, sampler, micro-batches
and files."""

from __future__ import annotations

import os

import pytest
from cases import cases, missing_samplers
from kill_anywhere import PHASES, endure, killers_in

KILLS = int(os.environ.get("STRESS_KILLS", "5"))

pytestmark = [pytest.mark.stress, pytest.mark.slow]


@pytest.fixture(scope="module")
def killers(tmp_path_factory):
    """Yields a cold and a warm killer."""
    with killers_in(tmp_path_factory.mktemp("killers"), seed=0) as found:
        yield found


def test_every_sampler_has_a_case():
    assert not missing_samplers()


@pytest.mark.parametrize("name", cases())
def test_killed_runs_end_with_the_bits_of_one_left_alone(name, killers, tmp_path):
    tally = endure(name, cases()[name], KILLS, killers, tmp_path)
    assert tally.kills.total() == KILLS
    assert not tally.lost


def test_every_phase_is_hit(killers, tmp_path):
    tally = endure("smooth_ap", cases()["smooth_ap"], 3 * len(PHASES), killers, tmp_path)
    assert set(PHASES) <= set(tally.kills)
    assert not tally.lost
