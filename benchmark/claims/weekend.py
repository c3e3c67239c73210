"""Which runs of a study decide most within given hours? ``plan STUDY --within 24h``.

The choice takes each chance at the families, the shared spreads and the level of the whole study
with one look: then a number depends on its own cell alone. The chosen runs are a study of their
own, for which all chances are computed again.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.claims.expected import Item, items_of
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.records import Cell
from benchmark.runs.folders import states_of
from benchmark.runs.needs import needs_of
from benchmark.runs.rates import hours_of
from benchmark.stats.choice import choose
from benchmark.study import Study
from benchmark.study.grid import Run, at_look
from benchmark.study.load import find_study
from benchmark.study.part import part_of

UNITS = {"h": 1, "d": 24}
PREFERRED = 10.0  # others that a preferred number or claim counts as much as
TIMES = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)  # the hours: points of the curve
SECONDS = 60.0  # of the search
FEWEST = 2  # seeds: one run has no spread
World = Mapping[float, float]  # {true difference in points: share}
Seeds = Mapping[Cell, int]


def read_wish(study: str, within: str, true: str, out: Path | None) -> tuple[float, World]:
    """Return hours and true differences; raise ConfigError with all problems of the options."""
    problems: list[Problem | str] = []
    try:
        find_study(study)
    except ConfigError as error:
        problems += error.problems
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([hd])", within)
    hours = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not hours:
        problems.append(f"--within '{within}' (allowed: hours or days above 0: 24h, 1.5h, 2d)")
    world: dict[float, float] = {}
    for share, points in re.findall(r"(\d*\.?\d+):(-?\d*\.?\d+)(?:,|$)", true):
        world[float(points)] = float(share)
    if len(world) <= true.count(",") or not math.isclose(sum(world.values()), 1):
        allowed = "SHARE:POINTS,... with shares that sum to 1: 0.8:0,0.2:3"
        problems.append(f"--true '{true}' (allowed: {allowed})")
    if out and (out.suffix != ".yaml" or out.exists()):
        problems.append(f"--out '{out}' (allowed: a new file: weekend.yaml)")
    if problems:
        raise ConfigError("plan --within", problems)
    return hours, world


class Weekend(NamedTuple):
    """The chosen number of seeds of each cell, by hours, and what it was made of.

    study    with the seeds of all looks
    hours    of each cell, up to each seed
    bound    within the hours that were asked for, no choice gains more beyond this one
    """

    study: Study
    items: list[Item]
    hours: Mapping[Cell, Any]
    true: World
    chosen: Mapping[float, Seeds]
    bound: float

    def alone(self, within: float) -> list[Item]:
        """Return what the runs chosen within these hours decide as a study of their own."""
        part = part_of(self.study, self.chosen[within])
        return items_of(part)

    @property
    def totals(self) -> Counter[str]:
        """The number of items of each kind."""
        return Counter(item.kind for item in self.items)


def choose_runs(
    study: Study,
    results: Path,
    within: float,
    true: World,
    speed: float = 1.0,
    prefer: str = "",
    here: bool = False,
) -> Weekend:
    """Return the runs that decide most within these hours, and within other hours.

    speed   of the GPU, as a multiple of that of the measured rates
    prefer  kind of items that counts ``PREFERRED`` times
    here    take only runs whose data and weights are at hand
    """
    path = str(study.path)
    if study.trials or any(block.noise_square for block in study.blocks):
        raise ConfigError(path, ["its rules or noise squares fix the seeds of all runs"])
    study = replace(at_look(study, max(len(study.looks), 1)), looks=())
    prices: dict[Cell, list[float]] = defaultdict(list)
    for run, state in states_of(study, results):
        price = 0.0 if state.result else _hours_of(run, speed)
        if price and here and not all(needs_of(run.spec).values()):
            price = math.inf
        prices[run.spec.cell].append(price)
    most = max(map(len, prices.values()))
    hours: dict[Cell, Any] = {}
    costs: dict[Any, Any] = {}
    for cell, of_cell in prices.items():
        hours[cell] = np.cumsum(of_cell)
        costs[cell] = np.full(most, math.inf)
        costs[cell][: len(of_cell)] = hours[cell]
        costs[cell] = costs[cell][FEWEST - 1 :]
    items = items_of(study)
    gains: dict[Any, Any] = defaultdict(lambda: np.zeros(most - FEWEST + 1))
    for item in items:
        weight = PREFERRED if item.kind == prefer else 1.0
        for at, n in enumerate(range(FEWEST, most + 1)):
            gains[item.cells][at] += weight * _chance(item, n, true)
    if not items or most < FEWEST:
        message = "plan two seeds, and a baseline or published tables"
        raise ConfigError(path, [message])
    chosen = {}
    bounds = {}
    for times in TIMES:
        choice = choose(costs, gains, times * within, SECONDS / len(TIMES))
        bounds[times] = choice.bound - choice.gain
        seeds = {}
        for cell, level in zip(costs, choice.levels, strict=True):
            if level:
                seeds[cell] = level + FEWEST - 1
        chosen[times * within] = seeds
    return Weekend(
        study=study,
        items=items,
        hours=hours,
        true=true,
        chosen=chosen,
        bound=bounds[1],
    )


def _hours_of(run: Run, speed: float) -> float:
    at_rates = hours_of([run.spec])
    hours = at_rates.training + at_rates.evaluation
    return hours / speed or run.resources.minutes / 60


def _chance(item: Item, seeds: int, world: World) -> float:
    chance = 0.0
    for points, share in world.items():
        if seeds >= FEWEST:
            chance += share * item.chance(seeds, points)
    return chance


def expected(items: Iterable[Item], seeds: Seeds, world: World) -> dict[str, float]:
    """Return the expected number of decided items of each kind."""
    sums: dict[str, float] = defaultdict(float)
    for item in items:
        common = min(seeds.get(cell, 0) for cell in item.cells)
        sums[item.kind] += _chance(item, common, world)
    return sums
