"""Adding seeds until a number is decided: the error rates of a study with several looks."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.stats.looks import Levels, obrien_fleming, pocock
from benchmark.stats.reproduction import ALPHA, DRIFTED, REPRODUCED, UNDECIDED, words
from benchmark.stats.simulations.rates import DRIFT, Rate, drawn, judge, share
from benchmark.stats.simulations.world import PAIRED, SINGLE, World

LOOKS = (3, 5, 10)
EVERY = tuple(range(3, 11))  # after each seed from the third to the tenth


def simulate(
    world: World, looks: tuple[int, ...], level: float | Levels, tables: int, seed: int = 0
) -> dict[str, Rate]:
    """Return the rates of looking after so many seeds, at one level or one each.

    any_drifted            tables with a false drift at some look
    reproduced_at_margin   numbers on the edge of the margin called reproduced at some look
    drift_seen_...         3 points called drifted at the first look, and at some, at spread 0.3
    confirmed_...          equal numbers called reproduced, likewise
    """
    world = replace(world, seeds=looks[-1])
    wide, middle = replace(world, sigma=3.0), replace(world, sigma=1.0)
    false = [
        share((verdicts(each, truth, looks, level, tables, seed)[-1] == DRIFTED).any(axis=-1))
        for each, truth in ((wide, 0.0), (middle, 1.0))
    ]
    edge = verdicts(world, 1.0, looks, level, tables, seed)
    one = np.zeros(world.cells)
    one[-1] = DRIFT
    shifted = verdicts(world, one, looks, level, tables, seed)
    equal = verdicts(world, 0.0, looks, level, tables, seed)
    return {
        "any_drifted": max(false, key=lambda rate: rate.value),
        "reproduced_at_margin": share(edge[-1] == REPRODUCED),
        "drift_seen_first": share(shifted[0][:, -1] == DRIFTED),
        "drift_seen_all": share(shifted[-1][:, -1] == DRIFTED),
        "confirmed_first": share(equal[0] == REPRODUCED),
        "confirmed_all": share(equal[-1] == REPRODUCED),
    }


def verdicts(
    world: World,
    truth: NDArray[np.float64] | float,
    looks: tuple[int, ...],
    level: float | Levels,
    tables: int,
    seed: int,
) -> list[NDArray[np.str_]]:
    """Return the verdicts (T, C) after each look; one that is reached at a look stays."""
    scores = drawn(world, truth, tables, seed, "sequential tables")
    state = np.full((tables, world.cells), UNDECIDED, dtype="<U12")
    after = []
    for look, each in zip(looks, np.broadcast_to(level, len(looks)), strict=True):
        now = words(judge(scores, looked=look), each)
        state = np.where(state == UNDECIDED, now, state)
        after.append(state)
    return after


def sequence_table(tables: int, seed: int = 0) -> pd.DataFrame:
    """Return one row per kind of reference and plan: rates after all looks."""
    records = []
    for reference, (name, (looks, level)) in product((SINGLE, PAIRED), plans().items()):
        found = simulate(World(reference=reference), looks, level, tables, seed)
        rates = {key: rate.value for key, rate in found.items()}
        records.append({"reference": reference, "looks": name, **rates})
    return pd.DataFrame(records)


def plans() -> Mapping[str, tuple[tuple[int, ...], float | Levels]]:
    """Return the looks and levels that ``docs/statistics.md`` compares."""
    return {
        "10 seeds, one look": ((10,), ALPHA),
        "3, 5 and 10, Pocock (chosen)": (LOOKS, pocock(LOOKS)),
        "3, 5 and 10, O'Brien-Fleming": (LOOKS, obrien_fleming(LOOKS)),
        "5 and 10, Pocock (chosen)": ((5, 10), pocock((5, 10))),
        "3, 5 and 10, each at 5%": (LOOKS, ALPHA),
        "3, 4, 5, .. 10, each at 5%": (EVERY, ALPHA),
    }
