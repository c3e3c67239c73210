"""The tests of claims checked: how often is a sentence judged when neither verdict is true?

Each scenario of ``scenarios.yaml`` is a claim with a truth on the edge between its hypotheses:
equal losses for ``beats``, flat scores for ``monotone``, two levels exactly the margin apart for
``insensitive``. Scores are normal around the truth, with a part that all runs of a seed share. The
limit, set before any run: either verdict in at most 5%.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.stats import binomtest

from benchmark.core.seeding import derive
from benchmark.papers.claims.kinds import parts_of
from benchmark.papers.claims.measurements import Condition, Measured
from benchmark.papers.claims.model import Arm, Claim, Scope
from benchmark.papers.claims.parts import AGAINST, decide
from benchmark.papers.verdicts.vocabulary import CONTRADICTED, SUPPORTED

FILE = Path(__file__).parent / "scenarios.yaml"
SEEDS = (2, 3, 5)
SD = 0.5  # of a run's own part: half a point, half a margin
SIZES = (32, 64, 128, 256)
RATES = {"supported": SUPPORTED, "contradicted": CONTRADICTED}


@dataclass(frozen=True)
class ClaimScenario:
    """A claim and the true mean, in percent, of every loss at every batch size."""

    name: str
    claim: Claim
    truth: Mapping[str, float]
    sizes: tuple[int, ...]


def scenarios() -> list[ClaimScenario]:
    """Return the scenarios: every kind at least once, with one part and with many."""
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return [
        ClaimScenario(
            name, _claim(**entry["claim"]), entry["truth"], tuple(entry.get("sizes", SIZES))
        )
        for name, entry in entries.items()
    ]


def _claim(**entry: Any) -> Claim:
    entry |= {side: tuple(map(Arm, entry.get(side, ()))) for side in ("first", "second")}
    entry["level_arms"] = {level: Arm(loss) for level, loss in entry.pop("levels", {}).items()}
    scope = (Scope(("simulated", "a second", "a third")),)  # others than the first: gains_most
    return Claim("nowhere", "a sentence", metrics=("map",), published=scope, **entry)


def simulate_claims(
    tables: int = 2000, *, seed: int = 0, seeds: tuple[int, ...] = SEEDS
) -> pd.DataFrame:
    """Return one row per scenario and number of seeds: both rates with 99.9% Monte Carlo limits."""
    rows = []
    for scenario in scenarios():
        for n in seeds:
            rng = np.random.default_rng(derive(seed, "claim simulation", scenario.name, str(n)))
            verdicts = [_verdict(scenario, n, rng) for _ in range(tables)]
            row: dict[str, Any] = {
                "scenario": scenario.name,
                "kind": scenario.claim.kind,
                "seeds": n,
            }
            for name, word in RATES.items():
                hits = verdicts.count(word)
                limits = binomtest(hits, tables).proportion_ci(0.999)
                row |= {name: hits / tables}
                row |= {f"{name}_low": limits.low, f"{name}_high": limits.high}
            rows.append(row)
    return pd.DataFrame(rows)


def beyond_limits(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in which a rate lies above 5% by more than Monte Carlo error."""
    return table[(table["supported_low"] > AGAINST) | (table["contradicted_low"] > AGAINST)]


class _Drawn:
    """Takes the place of a study: draws the runs of an arm when it is first asked for them."""

    def __init__(self, truth: Mapping[str, float], n: int, rng: np.random.Generator):
        self.truth, self.n, self.rng = truth, n, rng
        self.shared = rng.normal(0.0, SD, n)
        self.runs: dict[tuple[str, str, int | None], Measured] = {}

    def find(self, arm: Arm, condition: Condition, size: int | None, metric: str) -> Measured:
        key = (condition.dataset, arm.loss, size)
        if key not in self.runs:
            values = self.truth[arm.loss] + self.shared + self.rng.normal(0.0, SD, self.n)
            self.runs[key] = Measured(dict(enumerate(values)))
        return self.runs[key]


def _verdict(scenario: ClaimScenario, n: int, rng: np.random.Generator) -> str:
    condition = Condition("simulated", batch_sizes=scenario.sizes)
    drawn = _Drawn(scenario.truth, n, rng)
    parts = parts_of(scenario.claim, drawn, condition)
    return decide(parts, scenario.claim.alpha).verdict
