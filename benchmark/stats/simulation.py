"""The checker checked: error rates and power of the verdict rule on simulated tables.

Runs of ours are normal with spread ``sigma``, the reference is one draw, or the mean and spread of
``REFERENCE_RUNS`` draws with spread ``ratio * sigma``. Everything is in units of the margin. Two
limits were set before any run:

- true difference 0: any "drifted" in a table of 30 numbers in at most 5% of tables
  (``any_drifted``);
- true difference equal to the margin: "reproduced" in at most 5% of numbers
  (``reproduced_at_margin``).

The other two columns are power: "reproduced" at difference 0, "drifted" (after Holm) at four
margins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest

from benchmark.core.seeding import derive
from benchmark.stats.intervals import t_interval
from benchmark.stats.multiple import holm
from benchmark.stats.rule import ALPHA, Evidence, TestResult, compare

CELLS = 30
REFERENCE_RUNS = 5
POOLED_DF = 8
SIGMAS = (0.1, 0.3, 1.0, 3.0)
RATIOS = (0.3, 0.5, 1.0, 2.0)
SEEDS = (1, 2, 3, 4, 5)
LIMITED = ("any_drifted", "reproduced_at_margin")
POWER_AT = 4.0  # true difference, in margins, at which the power to call a drift is given
CONFIDENCE = 0.9998  # of Monte Carlo limits


@dataclass(frozen=True)
class RuleScenario:
    """``ours_n`` runs against a "single" or "several" reference; ``pooled``: with sister cells."""

    ours_n: int
    reference: str
    sigma: float
    ratio: float = 1.0
    pooled: bool = False

    @property
    def holds(self) -> bool:
        """Whether spreads are equal wherever one side's has to stand for both."""
        own_spread = self.ours_n > 1 or self.pooled
        return self.ratio == 1.0 or (self.reference == "several" and own_spread)


def scenarios(stress: bool = False) -> Iterator[RuleScenario]:
    """Yield the scenarios within the rule's assumptions; with ``stress`` those outside them."""
    for n, reference in itertools.product(SEEDS, ("single", "several")):
        # Only one run needs a pooled spread, and only against several it can do without.
        pooling = (False,) if n > 1 else (True,) if reference == "single" else (True, False)
        for sigma, ratio, pooled in itertools.product(SIGMAS, RATIOS, pooling):
            scenario = RuleScenario(n, reference, sigma, ratio, pooled)
            if scenario.holds != stress:
                yield scenario


def simulate(tables: int = 2000, *, stress: bool = False, seed: int = 0) -> pd.DataFrame:
    """Return one row per scenario: four rates with their Monte Carlo limits."""
    return pd.DataFrame(
        [{**asdict(each), **rates(each, tables, seed)} for each in scenarios(stress)]
    )


def rates(scenario: RuleScenario, tables: int, seed: int) -> dict[str, float]:
    """Return the rates of one scenario, from ``tables`` simulated tables a true difference."""
    role = "/".join(map(str, asdict(scenario).values()))

    def drawn(delta: float) -> TestResult:
        rng = np.random.default_rng(derive(seed, "verdict simulation", role, str(delta)))
        return draw(scenario, delta, tables, rng)

    same, edge, far = drawn(0.0), drawn(1.0), drawn(POWER_AT)
    hits_by_rate = {
        "any_drifted": (holm(same.p_drift) <= ALPHA).any(axis=1),
        "reproduced_at_margin": edge.p_equivalence <= ALPHA,
        "reproduced_when_equal": same.p_equivalence <= ALPHA,
        "drifted_when_far": holm(far.p_drift) <= ALPHA,
    }
    result: dict[str, float] = {}
    for name, hits in hits_by_rate.items():
        low, high = limits(np.asarray(hits))
        result |= {name: float(hits.mean()), f"{name}_low": low, f"{name}_high": high}
    return result


def limits(hits: NDArray[np.bool_]) -> tuple[float, float]:
    """Return Monte Carlo limits of a rate; tables are the units: their numbers share a spread."""
    if hits.ndim == 1:
        exact = binomtest(int(hits.sum()), hits.size).proportion_ci(CONFIDENCE)
        return float(exact.low), float(exact.high)
    interval = t_interval(hits.mean(axis=1), CONFIDENCE)
    return interval.low, interval.high


def draw(scenario: RuleScenario, delta: float, tables: int, rng: np.random.Generator) -> TestResult:
    """Return the rule's results (tables, CELLS) on numbers with true difference ``delta``."""
    shape = (tables, CELLS)
    ours = rng.normal(delta, scenario.sigma, (*shape, scenario.ours_n))
    draws = REFERENCE_RUNS if scenario.reference == "several" else 1
    theirs = rng.normal(0.0, scenario.sigma * scenario.ratio, (*shape, draws))
    # One spread per table, shared by its numbers, as in a study.
    pooled = scenario.sigma * np.sqrt(rng.chisquare(POOLED_DF, (tables, 1)) / POOLED_DF)
    return compare(
        Evidence(
            ours=ours.mean(axis=-1),
            ours_sd=ours.std(axis=-1, ddof=1) if scenario.ours_n > 1 else np.nan,
            ours_n=scenario.ours_n,
            reference=theirs.mean(axis=-1),
            reference_sd=theirs.std(axis=-1, ddof=1) if draws > 1 else np.nan,
            reference_n=draws if draws > 1 else np.nan,
            pooled_sd=pooled if scenario.pooled else np.nan,
            pooled_df=POOLED_DF,
        )
    )


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """Return, by seeds and kind of reference, the highest error rates, and power.

    Power depends on the spread: it is given at sigma 0.1 and 0.3 margins, for equal spreads.
    """
    keys = ["ours_n", "pooled", "reference"]
    parts = [table.groupby(keys)[list(LIMITED)].max()]
    for sigma in SIGMAS[:2]:
        equal = table[(table["sigma"] == sigma) & (table["ratio"] == 1.0)].set_index(keys)
        power = equal[["reproduced_when_equal", "drifted_when_far"]]
        parts.append(power.add_suffix(f" s={sigma:g}"))
    return pd.concat(parts, axis=1).reset_index()


def beyond_limits(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in which a limited rate lies above 5% by more than Monte Carlo error."""
    over = pd.concat([table[f"{name}_low"] > ALPHA for name in LIMITED], axis=1).any(axis=1)
    return table[over]
