"""The choice of seeds within hours, against every choice that there is."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from scipy import optimize

from benchmark.stats.choice import choose

LEVELS = 3


def problem(seed: int) -> tuple[dict, dict]:
    """Return costs and gains of four cells; some are needed together, one is half done."""
    rng = np.random.default_rng(seed)
    cells = "abcd"
    costs = {cell: np.cumsum(rng.uniform(0.5, 3.0, LEVELS)) for cell in cells}
    costs["a"] = np.maximum(costs["a"] - costs["a"][1], 0.0)
    costs["d"][2] = np.inf
    groups = [
        *itertools.combinations(cells, 1),
        ("a", "b"),
        ("b", "c"),
        ("a", "c", "d"),
    ]
    gains = {frozenset(group): np.sort(rng.uniform(0.0, 2.0, LEVELS)) for group in groups}
    return costs, gains


def value(levels: tuple[int, ...], costs: dict, gains: dict) -> tuple[float, float]:
    """Return the hours and the gain of a number of levels for each cell."""
    of_cell = dict(zip(costs, levels, strict=True))
    hours = sum(costs[cell][n - 1] for cell, n in of_cell.items() if n)
    gain = 0.0
    for group, rising in gains.items():
        common = min(of_cell[cell] for cell in group)
        gain += rising[common - 1] if common else 0.0
    return hours, gain


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("hours", [0.2, 2.0, 5.0, 9.0, 100.0])
def test_no_choice_of_all_that_there_are_gains_more(seed, hours):
    costs, gains = problem(seed)
    every = itertools.product(range(LEVELS + 1), repeat=len(costs))
    values = [value(levels, costs, gains) for levels in every]
    best = max(gain for spent, gain in values if spent <= hours)
    choice = choose(costs, gains, hours, 10.0)
    spent, gain = value(tuple(choice.levels), costs, gains)
    assert spent <= hours + 1e-6
    assert gain == pytest.approx(choice.gain)
    assert gain == pytest.approx(best, rel=2e-4, abs=1e-4)
    assert choice.bound >= best - 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_more_hours_never_gain_less(seed):
    costs, gains = problem(seed)
    found = [choose(costs, gains, hours, 10.0).gain for hours in np.linspace(0.0, 15.0, 12)]
    assert np.all(np.diff(found) >= -1e-4)
    assert found[-1] > found[0]


def test_seeds_that_are_there_cost_nothing_and_those_that_gain_nothing_are_not_bought():
    costs = {
        "done": np.zeros(2),
        "useless": np.ones(2),
        "useful": np.array([1.0, 2.0]),
    }
    gains = {
        frozenset(["done"]): np.array([0.5, 0.6]),
        frozenset(["useful"]): np.array([0.5, 0.5]),
        frozenset(["useless"]): np.zeros(2),
    }
    assert choose(costs, gains, 5.0, 10.0).levels == [2, 0, 1]
    assert choose(costs, gains, 0.5, 10.0).levels == [2, 0, 0]


def test_a_gain_that_falls_with_more_seeds_is_no_gain_of_theirs():
    gains = {frozenset(["a"]): np.array([0.5, 0.4, 0.45])}
    choice = choose({"a": np.arange(1.0, 4.0)}, gains, 9.0, 10.0)
    assert choice.levels == [1]
    assert choice.gain == pytest.approx(0.5)


def test_what_the_solver_prints_does_not_reach_standard_output(capfd, monkeypatch):
    milp = optimize.milp

    def printing(*values, **options):
        ctypes.CDLL(None).puts(b"a line of the solver")
        return milp(*values, **options)

    monkeypatch.setattr(optimize, "milp", printing)
    choose(*problem(0), 5.0, 10.0)
    ctypes.CDLL(None).fflush(None)
    print("a line of ours")
    assert capfd.readouterr().out == "a line of ours\n"
