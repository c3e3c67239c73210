"""The tables that ``simulate`` prints: error rates and power of the rule, before and after.

The goals were set before any simulation, for 30 numbers against one printed value, frozen runs or
five printed runs, a margin of one point, and equal published spreads:

- any false drift in at most 5 % of tables, 6 % where spreads vary (log sd 0.4);
- numbers that differ by the margin called reproduced in at most 5 %;
- a drift of 3 points at spread 0.3 called in at least 80 % with 3 seeds and 95 % with 5.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from benchmark.stats.moderation import moderate
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, compare, words
from benchmark.stats.sensitivity import marks
from benchmark.stats.simulations.frontier import plain, worst_any_drifted
from benchmark.stats.simulations.rates import (
    Rate,
    columns,
    drawn,
    drift_seen,
    evidence,
    reproduced,
    share,
)
from benchmark.stats.simulations.world import PAIRED, SEVERAL, SINGLE, World

RULES = {"plain t test": plain, "shared spread": moderate}
SEEDS = (2, 3, 5, 10)
VARIED = 0.4  # log sd of spreads that differ from cell to cell
SIGMAS = (0.1, 0.3)
GOALS = {"any_drifted": 0.05, "any_drifted_varied": 0.06, "reproduced_at_margin": 0.05}
POWER_GOALS = {3: 0.80, 5: 0.95}  # by seeds, against one printed value
# Worlds that leave the assumptions; each has the mark of sensitivity that asks about it, or none.
WORLDS: Mapping[str, World] = {
    "as assumed": World(),
    "heavy tails": World(heavy_tails=True),
    "best of 3 runs": World(best_of=3),
    "best of 20 epochs": World(epochs=20),
    "published spread x 0.3": World(ratio=0.3),
    "published spread x 2": World(ratio=2.0),
    "published spread x 3": World(ratio=3.0),
    "laboratories differ by 0.5": World(laboratory=0.5),
    "rounded to 0.1": World(printed=0.1),
    "cells correlated (0.5)": World(correlation=0.5),
    "log sd of spreads 0.8": World(log_sd=0.8),
    "one cell of 10 times the spread": World(outliers=1, factor=10.0),
    "places of 6 cells, log sd 0.4": World(sisters=6, log_sd=0.4),
    "one run of ten diverges": World(diverging=0.1),
    "frozen, steps of 0.5": World(reference=PAIRED, step=0.5),
    "frozen, heavy tails": World(reference=PAIRED, heavy_tails=True),
    "frozen, correlated (0.5)": World(reference=PAIRED, correlation=0.5),
}


def rule_table(tables: int, seed: int = 0, seeds: tuple[int, ...] = SEEDS) -> pd.DataFrame:
    """Return one row per kind of reference, number of seeds and rule; rates with their limits."""
    records = []
    for reference, n, (rule, moderation) in product(
        (SINGLE, SEVERAL, PAIRED), seeds, RULES.items()
    ):
        world = World(reference=reference, seeds=n)
        varied = replace(world, log_sd=VARIED)
        edge = [
            reproduced(replace(each, sigma=sigma), tables, 1.0, seed, moderation)
            for each, sigma in product((world, varied), SIGMAS)
        ]
        rates = {
            "any_drifted": worst_any_drifted(world, tables, seed, moderation),
            "any_drifted_varied": worst_any_drifted(varied, tables, seed, moderation),
            "reproduced_at_margin": max(edge, key=lambda rate: rate.value),
            "drift_seen": drift_seen(world, tables, seed=seed, moderation=moderation),
            "confirmed": reproduced(world, tables, 0.0, seed, moderation),
        }
        records.append({"reference": reference, "seeds": n, "rule": rule, **columns(rates)})
    return pd.DataFrame(records)


def missed_goals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the shared spread that miss a goal by more than Monte Carlo error."""
    chosen = table[table["rule"] == "shared spread"]
    missed = np.zeros(len(chosen), bool)
    for name, limit in GOALS.items():
        missed |= (chosen[f"{name}_low"] > limit).to_numpy()
    for n, goal in POWER_GOALS.items():
        weak = (chosen["seeds"] == n) & (chosen["reference"] == SINGLE)
        missed |= (weak & (chosen["drift_seen_high"] < goal)).to_numpy()
    return chosen[missed]


def world_table(tables: int, seed: int = 0, seeds: tuple[int, ...] = (3, 5)) -> pd.DataFrame:
    """Return one row per world and number of seeds: how often a verdict is wrong.

    ``..._standing`` counts only wrong verdicts without any mark of sensitivity.
    """
    records = []
    for name, n in product(WORLDS, seeds):
        world = replace(WORLDS[name], seeds=n)
        false = [
            _wrong(replace(world, sigma=sigma), truth, DRIFTED, tables, seed)
            for sigma, truth in ((0.3, 0.0), (3.0, 0.0), (1.0, 1.0))
        ]
        edge = [
            _wrong(replace(world, sigma=sigma), 1.0, REPRODUCED, tables, seed) for sigma in SIGMAS
        ]
        record: dict[str, object] = {"world": name, "seeds": n}
        for at, end in enumerate(("", "_standing")):
            record[f"any_drifted{end}"] = max(rates[at].value for rates in false)
            record[f"reproduced_at_margin{end}"] = max(rates[at].value for rates in edge)
        records.append({**record, "drift_seen": drift_seen(world, tables, seed=seed).value})
    return pd.DataFrame(records)


def _wrong(world: World, truth: float, word: str, tables: int, seed: int) -> tuple[Rate, Rate]:
    """Return the rate of a wrong verdict, and of one that stands under every mark.

    Of drifts it is the share of tables with any, of the other word the share of numbers.
    """
    found = evidence(drawn(world, truth, tables, seed))
    hits = words(compare(found)) == word
    published = world.reference != PAIRED
    standing = np.logical_and.reduce(
        [mark.stands for mark in marks(found, published=published).values()]
    )
    if word == DRIFTED:
        return share(hits.any(axis=-1)), share((hits & standing).any(axis=-1))
    return share(hits), share(hits & standing)


def percent(table: pd.DataFrame) -> str:
    """Return a table for a terminal: rates in percent, without Monte Carlo limits."""
    shown = table[[name for name in table if not str(name).endswith(("_low", "_high"))]]
    return shown.to_string(index=False, float_format=lambda value: f"{100 * value:.1f}")
