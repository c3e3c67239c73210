"""What would decide a number that is still inconclusive?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmark.stats.reproduction import ALPHA, Evidence, compare

MOST_SEEDS = 1000


def seeds_to_decide(
    evidence: Evidence, *, family: int = 1, alpha: float = ALPHA, most: int = MOST_SEEDS
) -> int | None:
    """Return the fewest seeds above the present ones that decide, if difference and spread stay.

    ``evidence`` is that of one number. Paired references get as many seeds as ours. A drift counts
    at the strictest level of Holm, ``alpha`` / ``family``. None: even ``most`` seeds would not do.
    """
    values = {name: np.asarray(each, float) for name, each in vars(evidence).items()}
    paired = bool(values["paired_n"] >= 1)
    now = values["paired_n" if paired else "ours_n"]
    if not now >= 0 or now >= most:
        return None
    seeds = np.arange(int(now) + 1, most + 1, dtype=float)
    more = seeds - now
    if paired:
        evidence = replace(evidence, paired_n=seeds, paired_df=values["paired_df"] + more)
    else:
        evidence = replace(evidence, ours_n=seeds, df=values["df"] + more)
    result = compare(evidence, alpha)
    decided = (result.p_equivalence <= alpha) | (result.p_drift <= alpha / max(family, 1))
    return int(seeds[decided.argmax()]) if decided.any() else None
