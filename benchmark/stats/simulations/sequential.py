"""Adding seeds until a number is decided: the error rates of a study with several looks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.core.seeding import derive
from benchmark.stats.looks import Levels, Looks
from benchmark.stats.reproduction import ALPHA, DRIFTED, REPRODUCED, UNDECIDED, words
from benchmark.stats.simulations.rates import DRIFT, Rate, judge, share
from benchmark.stats.simulations.world import PAIRED, SINGLE, World, draw

LOOKS = Looks((3, 5, 10))
EVERY = Looks(tuple(range(3, 11)))  # after each seed from the third to the tenth


@dataclass(frozen=True)
class Sequence:
    """Rates of a study that looks several times; those of power are after each look.

    any_drifted   tables with a false drift at some look
    reproduced    numbers on the edge of the margin that are called reproduced at some look
    drift_seen    3 points called drifted by then
    confirmed     equal numbers called reproduced by then
    """

    any_drifted: Rate
    reproduced: Rate
    drift_seen: tuple[Rate, ...]
    confirmed: tuple[Rate, ...]


def simulate(
    world: World, looks: Looks, level: float | Levels, tables: int, seed: int = 0
) -> Sequence:
    """Return the rates of looking at ``looks``, at one level or one each; power at spread 0.3."""
    world = replace(world, seeds=looks.seeds[-1])
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
    return Sequence(
        max(false, key=lambda rate: rate.value),
        share(edge[-1] == REPRODUCED),
        tuple(share(each[:, -1] == DRIFTED) for each in shifted),
        tuple(share(each == REPRODUCED) for each in equal),
    )


def verdicts(
    world: World,
    truth: NDArray[np.float64] | float,
    looks: Looks,
    level: float | Levels,
    tables: int,
    seed: int,
) -> list[NDArray[np.str_]]:
    """Return the verdicts (T, C) after each look; one that is reached at a look stays."""
    role = ("sequential tables", repr(world), str(np.max(truth)), str(np.ndim(truth)))
    drawn = draw(world, truth, tables, np.random.default_rng(derive(seed, *role)))
    state = np.full((tables, world.cells), UNDECIDED, dtype="<U12")
    after = []
    levels = (level,) * len(looks.seeds) if isinstance(level, float) else level
    for look, each in zip(looks.seeds, levels, strict=True):
        now = words(judge(drawn, looked=look), each)
        state = np.where(state == UNDECIDED, now, state)
        after.append(state)
    return after


def sequence_table(tables: int, seed: int = 0) -> pd.DataFrame:
    """Return one row per kind of reference and plan: rates after all looks."""
    records = []
    for reference, (name, (looks, level)) in product((SINGLE, PAIRED), plans().items()):
        found = simulate(World(reference=reference), looks, level, tables, seed)
        records.append(
            {
                "reference": reference,
                "looks": name,
                "any_drifted": found.any_drifted.value,
                "reproduced_at_margin": found.reproduced.value,
                "drift_seen_first": found.drift_seen[0].value,
                "drift_seen_all": found.drift_seen[-1].value,
                "confirmed_first": found.confirmed[0].value,
                "confirmed_all": found.confirmed[-1].value,
            }
        )
    return pd.DataFrame(records)


def plans() -> Mapping[str, tuple[Looks, float | Levels]]:
    """Return the looks and levels that ``docs/statistics.md`` compares."""
    return {
        "10 seeds, one look": (Looks((10,)), ALPHA),
        "3, 5 and 10, Pocock (chosen)": (LOOKS, LOOKS.level()),
        "3, 5 and 10, O'Brien-Fleming": (LOOKS, LOOKS.obrien_fleming()),
        "5 and 10, Pocock (chosen)": (Looks((5, 10)), Looks((5, 10)).level()),
        "3, 5 and 10, each at 5%": (LOOKS, ALPHA),
        "3, 4, 5, .. 10, each at 5%": (EVERY, ALPHA),
    }
