"""The frontier: what each candidate rule gets wrong, against what it sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from benchmark.stats.simulations.candidates import CANDIDATES
from benchmark.stats.simulations.rates import (
    Moderation,
    Rate,
    any_drifted,
    drift_seen,
    reproduced,
)
from benchmark.stats.simulations.world import PAIRED, SINGLE, World

SEEDS = (2, 3, 5)
# How the true spreads of sister cells may differ.
SPREADS: Mapping[str, World] = {
    "equal": World(),
    "log sd 0.4": World(log_sd=0.4),
    "log sd 0.8": World(log_sd=0.8),
    "one of 10 times": World(outliers=1, factor=10.0),
    "places of 6, log sd 0.4": World(sisters=6, log_sd=0.4),
}


@dataclass(frozen=True)
class FrontierRow:
    """Rates of one candidate with so many seeds, in a world of spreads.

    any_drifted   tables with a false drift, the worse of: no difference and a spread of 3 margins;
                  every difference on the edge of the margin and a spread of one margin
    reproduced    numbers called reproduced that differ by the margin, at spread 0.3
    drift_seen    3 points called drifted, at spread 0.3
    """

    candidate: str
    reference: str
    seeds: int
    spreads: str
    any_drifted: Rate
    reproduced: Rate
    drift_seen: Rate


def rows(
    tables: int, references: tuple[str, ...] = (SINGLE, PAIRED), seed: int = 0
) -> Iterator[FrontierRow]:
    """Yield all rows, each from ``tables`` simulated tables a rate."""
    for reference, seeds, (spreads, world) in product(references, SEEDS, SPREADS.items()):
        here = replace(world, reference=reference, seeds=seeds)
        for name, moderation in CANDIDATES.items():
            yield FrontierRow(
                name,
                reference,
                seeds,
                spreads,
                worst_any_drifted(here, tables, seed, moderation),
                reproduced(here, tables, 1.0, seed, moderation),
                drift_seen(here, tables, seed=seed, moderation=moderation),
            )


def worst_any_drifted(world: World, tables: int, seed: int, moderation: Moderation) -> Rate:
    """Return the higher of the two rates of ``FrontierRow.any_drifted``."""
    far = any_drifted(replace(world, sigma=3.0), tables, 0.0, seed, moderation)
    edge = any_drifted(replace(world, sigma=1.0), tables, 1.0, seed, moderation)
    return max(far, edge, key=lambda rate: rate.value)


def table(found: Iterator[FrontierRow]) -> pd.DataFrame:
    """Return the rows as a table, rates in percent with their Monte Carlo limits."""
    columns = ("any_drifted", "reproduced", "drift_seen")
    records = []
    for row in found:
        record = {key: value for key, value in vars(row).items() if key not in columns}
        for name in columns:
            rate: Rate = getattr(row, name)
            record |= {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}
        records.append(record)
    return pd.DataFrame(records)
