"""Does a verdict stand when an assumption fails? Four worlds, each judged again as a whole table.

| mark | what is assumed instead | how it enters |
|---|---|---|
| spread | the published spread is twice what was assumed | 4 times the reference's variance |
| best_of_3 | the one printed value is the best of three runs | mean and variance of that maximum |
| tails | scores have heavy tails | Student's t with at most 4 degrees of freedom |
| laboratory | laboratories differ, with a spread of 0.5 points | 0.25 more variance of D |

The first two and the last ask about somebody else's runs: they do not apply to our own frozen runs.
The second does not apply to a mean of several runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmark.stats.reproduction import ALPHA, Evidence, TestResult, compare

SPREAD, BEST, TAILS, LABORATORY = "spread", "best_of_3", "tails", "laboratory"
MARKS: Mapping[str, str] = {
    SPREAD: "the published spread is twice what was assumed",
    BEST: "the published value is the best of three runs",
    TAILS: "scores have heavy tails",
    LABORATORY: "laboratories differ by 0.5 points",
}
TIMES = 2.0
MEAN_OF_BEST = 3 / (2 * np.sqrt(np.pi))  # of three standard normal draws
VARIANCE_OF_BEST = 1 + np.sqrt(3) / (2 * np.pi) - MEAN_OF_BEST**2
# Keeps false drifts at 5% of tables where runs have Student's t distribution with 3 degrees of
# freedom (docs/statistics.md).
TAILS_DF = 4.0
BETWEEN_LABORATORIES = 0.5


def applies(reference_n: ArrayLike, published: ArrayLike = True) -> dict[str, NDArray[np.bool_]]:
    """Return where the question of each mark makes sense; elsewhere the verdict stands.

    ``published`` is False for references that are our own frozen runs.
    """
    foreign, several = np.asarray(published, bool), np.asarray(reference_n, float) >= 2
    asked = {SPREAD: foreign, BEST: foreign & ~several, LABORATORY: foreign}
    return {name: np.asarray(asked.get(name, True)) for name in MARKS}


def marks(
    evidence: Evidence, *, published: ArrayLike = True, alpha: float = ALPHA, planned: int = 0
) -> dict[str, TestResult]:
    """Return what the tests find in the world of each mark, or in ours where it does not apply."""
    asked = applies(evidence.reference_n, published)
    return {
        name: compare(_where(asked[name], change(evidence), evidence), alpha, planned)
        for name, change in _CHANGES.items()
    }


def _of_reference(evidence: Evidence) -> tuple[ArrayLike, ArrayLike]:
    """Return variance and df of one run of the reference: its own where stated, else ours."""
    stated = np.isfinite(np.asarray(evidence.reference_variance, float))
    return (
        np.where(stated, evidence.reference_variance, evidence.variance),
        np.where(stated, evidence.reference_df, evidence.df),
    )


def _wider(evidence: Evidence) -> Evidence:
    variance, df = _of_reference(evidence)
    return replace(evidence, reference_variance=TIMES**2 * np.asarray(variance), reference_df=df)


def _best(evidence: Evidence) -> Evidence:
    variance, df = _of_reference(evidence)
    return replace(
        evidence,
        reference=np.asarray(evidence.reference, float) - MEAN_OF_BEST * np.sqrt(variance),
        reference_variance=VARIANCE_OF_BEST * np.asarray(variance),
        reference_df=df,
    )


def _heavy(evidence: Evidence) -> Evidence:
    names = ("df", "reference_df", "paired_df")
    return replace(
        evidence, **{name: np.minimum(getattr(evidence, name), TAILS_DF) for name in names}
    )


def _between(evidence: Evidence) -> Evidence:
    return replace(evidence, laboratory=BETWEEN_LABORATORIES**2)


_CHANGES = {SPREAD: _wider, BEST: _best, TAILS: _heavy, LABORATORY: _between}


def _where(chosen: NDArray[np.bool_], changed: Evidence, kept: Evidence) -> Evidence:
    """Return the fields of ``changed`` where ``chosen``, elsewhere those of ``kept``."""
    before = vars(kept)
    return Evidence(
        **{name: np.where(chosen, each, before[name]) for name, each in vars(changed).items()}
    )
