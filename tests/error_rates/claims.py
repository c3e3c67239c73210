"""The tests of claims: how often is a sentence judged when neither verdict is true?

Each scenario of ``claims.yaml`` is a claim with a truth on the edge between its hypotheses. Scores
are normal around the truth, with a part that all runs of a seed share. The limit, set before any
run: either verdict in at most 5%.
"""

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from error_rates.rule import Rate, share, table_of

from benchmark.claims.claim_tests import ClaimCondition, Measured, parts_of
from benchmark.claims.claim_verdicts import AGAINST, decide
from benchmark.core.seeding import derive
from benchmark.published.schema import Arm, Claim, Scope
from benchmark.verdicts.verdicts import CONTRADICTED, SUPPORTED

SCENARIOS = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text())
SD = 0.5  # of a run's own part: half a point, half a margin
SIZES = (32, 64, 128, 256)
PUBLISHED = (Scope(("simulated", "a second", "a third")),)  # others than the first: gains_most


def claim_table(tables: int, seed: int = 0, seeds: tuple[int, ...] = (2, 3, 5)) -> pd.DataFrame:
    """Return one row per scenario and number of seeds: both rates with 99.9% Monte Carlo limits."""

    def rates(scenario: str, seeds: int) -> dict[str, Rate]:
        entry = SCENARIOS[scenario]
        claim = claim_of(entry["claim"])
        condition = ClaimCondition("simulated", batch_sizes=tuple(entry.get("sizes", SIZES)))
        rng = np.random.default_rng(derive(seed, "claim simulation", scenario, str(seeds)))
        verdicts = []
        for _ in range(tables):
            parts = parts_of(claim, _Drawn(entry["truth"], seeds, rng), condition)
            verdicts.append(decide(parts, claim.alpha, enough=claim.enough).verdict)
        found = np.array(verdicts)
        return {word: share(found == word, 0.999) for word in (SUPPORTED, CONTRADICTED)}

    return table_of(rates, scenario=SCENARIOS, seeds=seeds)


def claim_of(entry: dict[str, Any]) -> Claim:
    """Return the claim of a scenario; losses are named by their label alone."""
    fields = {**entry, "metrics": ("map",), "published": PUBLISHED}
    for side in ("first", "second"):
        fields[side] = tuple(map(Arm, entry.get(side, ())))
    levels = fields.pop("levels", {})
    fields["level_arms"] = {level: Arm(loss) for level, loss in levels.items()}
    return Claim("nowhere", "a sentence", **fields)


def beyond_limits(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in which a rate lies above 5% by more than Monte Carlo error."""
    rates = table[["supported_low", "contradicted_low"]]
    return table[(rates > AGAINST).any(axis=1)]


class _Drawn:
    """Takes the place of a study: draws the runs of an arm when it is first asked for them."""

    def __init__(self, truth: dict[str, float], n: int, rng: np.random.Generator):
        self.truth = truth
        self.shared = rng.normal(0.0, SD, n)
        self.own = defaultdict(partial(rng.normal, 0.0, SD, n))

    def find(self, arm: Arm, condition: ClaimCondition, size: int | None, metric: str) -> Measured:
        own = self.own[condition.dataset, arm.loss, size]
        scores = self.truth[arm.loss] + self.shared + own
        return Measured(dict(enumerate(scores)))
