"""The checker checked: error rates and power of the verdict rule on simulated tables with a known truth.

Runs of ours are normal with spread ``sigma``, the reference is one draw, or the mean and spread of ``REFERENCE_RUNS``
draws with spread ``ratio * sigma``. Everything is in units of the margin. Two limits were set before any run:

- true difference 0: any "drifted" in a table of 30 numbers in at most 5% of tables (``any_drifted``);
- true difference equal to the margin: "reproduced" in at most 5% of numbers (``reproduced_at_margin``).

The other two columns are power: "reproduced" at difference 0, "drifted" (after Holm) at four margins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from benchmark.core.seeding import derive
from benchmark.papers.verdicts.rule import ALPHA, Evidence, Judged, judge_arrays
from benchmark.stats.intervals import t_interval
from benchmark.stats.multiple import holm

CELLS = 30
REFERENCE_RUNS = 5
POOLED_DF = 8
SIGMAS = (0.1, 0.3, 1.0, 3.0)
SEEDS = (1, 2, 3, 4, 5)
LIMITED = ("any_drifted", "reproduced_at_margin")
POWER_AT = 4.0  # true difference, in margins, at which the power to call a drift is given


@dataclass(frozen=True)
class Scenario:
    """``ours_n`` runs against a "single" or "several" reference; ``pooled``: sister cells give a spread to one run."""

    ours_n: int
    reference: str
    sigma: float
    ratio: float = 1.0
    pooled: bool = False

    @property
    def holds(self) -> bool:
        """Returns whether spreads are equal wherever one side's has to stand for both."""
        return self.ratio == 1.0 or (
            self.reference == "several" and (self.ours_n > 1 or self.pooled)
        )


def scenarios(stress: bool = False) -> Iterator[Scenario]:
    """Yields the scenarios within the rule's assumptions; with ``stress`` those outside them instead."""
    for n, reference, sigma, ratio in itertools.product(
        SEEDS, ("single", "several"), SIGMAS, (0.3, 0.5, 1.0, 2.0)
    ):
        for pooled in _pooling(n, reference):
            scenario = Scenario(n, reference, sigma, ratio, pooled)
            if scenario.holds != stress:
                yield scenario


def _pooling(n: int, reference: str) -> tuple[bool, ...]:
    """Returns which cases exist: only one run needs a pooled spread, and only against several it can do without."""
    return (False,) if n > 1 else (True,) if reference == "single" else (True, False)


def simulate(tables: int = 2000, *, stress: bool = False, seed: int = 0) -> pd.DataFrame:
    """Returns one row per scenario: four rates, each with 99.98% Monte Carlo limits ``<rate>_low``, ``<rate>_high``."""
    rows = []
    for scenario in scenarios(stress):
        rows.append(
            {
                "ours_n": scenario.ours_n,
                "reference": scenario.reference,
                "sigma": scenario.sigma,
                "ratio": scenario.ratio,
                "pooled": scenario.pooled,
                **rates(scenario, tables, seed),
            }
        )
    return pd.DataFrame(rows)


def rates(scenario: Scenario, tables: int, seed: int) -> dict[str, float]:
    """Returns the rates of one scenario from ``tables`` simulated tables for each true difference."""
    role = f"{scenario.ours_n}/{scenario.reference}/{scenario.sigma}/{scenario.ratio}/{scenario.pooled}"
    same, edge, far = (
        draw(
            scenario,
            delta,
            tables,
            np.random.default_rng(derive(seed, "verdict simulation", role, str(delta))),
        )
        for delta in (0.0, 1.0, POWER_AT)
    )
    found = {
        "any_drifted": (holm(same.p_drift) <= ALPHA).any(axis=1),
        "reproduced_at_margin": edge.p_equivalence <= ALPHA,
        "reproduced_when_equal": same.p_equivalence <= ALPHA,
        "drifted_when_far": holm(far.p_drift) <= ALPHA,
    }
    result = {}
    for name, hits in found.items():
        low, high = limits(hits)
        result |= {name: float(hits.mean()), f"{name}_low": low, f"{name}_high": high}
    return result


def limits(hits: np.ndarray) -> tuple[float, float]:
    """Returns 99.98% Monte Carlo limits of a rate: the numbers of one table share a spread, so tables are the units."""
    if hits.ndim == 1:
        low, high = proportion_confint(int(hits.sum()), hits.size, alpha=0.0002, method="beta")
        return float(low), float(high)
    found = t_interval(hits.mean(axis=1), 0.9998)
    return found.low, found.high


def draw(scenario: Scenario, delta: float, tables: int, rng: np.random.Generator) -> Judged:
    """Returns the rule's results on arrays (tables, CELLS) of simulated numbers with true difference ``delta``."""
    shape = (tables, CELLS)
    ours = rng.normal(delta, scenario.sigma, (*shape, scenario.ours_n))
    draws = REFERENCE_RUNS if scenario.reference == "several" else 1
    theirs = rng.normal(0.0, scenario.sigma * scenario.ratio, (*shape, draws))
    # One spread per table, shared by its numbers, as in a study.
    pooled = scenario.sigma * np.sqrt(rng.chisquare(POOLED_DF, (tables, 1)) / POOLED_DF)
    return judge_arrays(
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
    """Returns, per number of seeds and kind of reference, the highest error rates over spreads and ratios, and power.

    Power depends on the spread: it is given at sigma 0.1 and 0.3 margins, for equal spreads.
    """
    keys = ["ours_n", "pooled", "reference"]
    errors = table.groupby(keys)[list(LIMITED)].max()
    parts = [errors]
    for sigma in SIGMAS[:2]:
        chosen = table[(table["sigma"] == sigma) & (table["ratio"] == 1.0)].set_index(keys)
        parts.append(
            chosen[["reproduced_when_equal", "drifted_when_far"]].add_suffix(f" s={sigma:g}")
        )
    return pd.concat(parts, axis=1).reset_index()


def beyond_limits(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows in which a limited rate lies above 5% by more than Monte Carlo error."""
    over = pd.Series(False, index=table.index)
    for name in LIMITED:
        over |= table[f"{name}_low"] > ALPHA
    return table[over]
