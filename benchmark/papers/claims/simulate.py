"""The tests of claims checked: how often a sentence is supported, or contradicted, when neither is true.

Each scenario is a claim of one kind with a truth on the edge between its hypotheses: equal losses for ``beats``,
flat scores for ``monotone``, two levels exactly the margin apart for ``insensitive``. Scores are normal around the
truth, with a part that all runs of a seed share. The limit, set before any run: either verdict in at most 5%.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from benchmark.core.seeding import derive
from benchmark.papers.claims.kinds import KINDS
from benchmark.papers.claims.model import Arm, Claim
from benchmark.papers.claims.parts import AGAINST, decide
from benchmark.papers.claims.series import Found, Place
from benchmark.papers.verdicts.vocabulary import CONTRADICTED, SUPPORTED

SEEDS = (2, 3, 5)
SD = 0.005  # of a run's own part: half a point, half a margin
SIZES = (32, 64, 128, 256)
RATES = ("supported", "contradicted")
Truth = Callable[[Arm, int], float]


@dataclass(frozen=True)
class Scenario:
    """A claim and the true mean of every arm at every batch size."""

    name: str
    claim: Claim
    truth: Truth
    sizes: tuple[int, ...] = SIZES


def scenarios() -> Iterator[Scenario]:
    """Yields the scenarios: every kind at least once, with one part and with many."""
    a, b, c, d = (Arm(name) for name in "abcd")
    levels = {arm.loss: arm for arm in (a, b, c, d)}

    def flat(arm: Arm, size: int) -> float:
        return 0.5

    def beaten_once(arm: Arm, size: int) -> float:
        return 0.5 if arm.loss in "ab" else 0.4

    def margin_apart(arm: Arm, size: int) -> float:
        return 0.51 if arm.loss == "a" else 0.5

    one = SIZES[:1]
    yield Scenario("beats: equal losses, 1 part", _claim("beats", (a,), (b,)), flat, one)
    yield Scenario("beats: equal losses, 12 parts", _claim("beats", (a,), (b, c, d)), flat)
    yield Scenario(
        "beats: one rival equal, two far below", _claim("beats", (a,), (b, c, d)), beaten_once, one
    )
    yield Scenario(
        "beats by a point: it is a point", _claim("beats", (a,), (b,), by=1.0), margin_apart, one
    )
    yield Scenario("monotone: flat, 4 sizes", _claim("monotone", (a,)), flat)
    yield Scenario("best_at: 4 equal levels", _claim("best_at", levels=levels, best="a"), flat, one)
    yield Scenario(
        "best_at: one equal, two far below",
        _claim("best_at", levels=levels, best="a"),
        beaten_once,
        one,
    )
    two = {"a": a, "b": b}
    yield Scenario(
        "insensitive: 2 levels, a margin apart",
        _claim("insensitive", levels=two),
        margin_apart,
        one,
    )
    yield Scenario(
        "insensitive: 4 levels, one a margin off",
        _claim("insensitive", levels=levels),
        margin_apart,
        one,
    )
    yield Scenario("grows: constant gain", _claim("grows", (a,), (b,)), margin_apart)
    yield Scenario("shrinks: constant gain", _claim("shrinks", (a,), (b,)), margin_apart)
    yield Scenario(
        "cost_ratio: said to be above 1, is 1",
        _claim("cost_ratio", (a,), (b,), between=[1.0]),
        flat,
        one,
    )
    edge = _claim("cost_ratio", (a,), (b,), between=[0.9, 1.02])
    yield Scenario("cost_ratio: at the upper end", edge, margin_apart, one)


def simulate_claims(
    tables: int = 2000, *, seed: int = 0, seeds: tuple[int, ...] = SEEDS
) -> pd.DataFrame:
    """Returns one row per scenario and number of seeds: both rates with 99.9% Monte Carlo limits."""
    rows = []
    for scenario in scenarios():
        for n in seeds:
            rng = np.random.default_rng(derive(seed, "claim simulation", scenario.name, str(n)))
            verdicts = [_verdict(scenario, n, rng) for _ in range(tables)]
            row: dict = {"scenario": scenario.name, "kind": scenario.claim.kind, "seeds": n}
            for name, word in zip(RATES, (SUPPORTED, CONTRADICTED), strict=True):
                hits = verdicts.count(word)
                row[name] = hits / tables
                row[f"{name}_low"], row[f"{name}_high"] = proportion_confint(
                    hits, tables, alpha=0.001, method="beta"
                )
            rows.append(row)
    return pd.DataFrame(rows)


def beyond_limits(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows in which a rate lies above 5% by more than Monte Carlo error."""
    return table[(table["supported_low"] > AGAINST) | (table["contradicted_low"] > AGAINST)]


class _Drawn:
    """Stands for ``benchmark.papers.claims.series.Series``: draws the runs of an arm when it is first asked for them."""

    def __init__(self, truth: Truth, n: int, rng: np.random.Generator):
        self.truth, self.n, self.rng = truth, n, rng
        self.shared = rng.normal(0.0, SD, n)
        self.runs: dict[tuple[Arm, int], Found] = {}

    def find(self, arm: Arm, place: Place, size: int, metric: str) -> Found:
        if (arm, size) not in self.runs:
            values = self.truth(arm, size) + self.shared + self.rng.normal(0.0, SD, self.n)
            self.runs[arm, size] = Found(pd.Series(values))
        return self.runs[arm, size]


def _verdict(scenario: Scenario, n: int, rng: np.random.Generator) -> str:
    place = Place("simulated", batch_sizes=scenario.sizes)
    parts = KINDS[scenario.claim.kind](scenario.claim, _Drawn(scenario.truth, n, rng), place)
    return decide(parts, scenario.claim.alpha).verdict


def _claim(kind: str, first=(), second=(), levels=None, **options) -> Claim:
    return Claim(
        kind,
        "simulated",
        "nowhere",
        "a sentence",
        kind,
        ("map",),
        (),
        AGAINST,
        first,
        second,
        levels or {},
        options,
    )
