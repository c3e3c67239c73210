"""Are ours and the reference the same within the margin? The test behind every verdict.

``benchmark.stats.reproduction`` has its formulas. Divergence, and missing runs, are asked first.
"""

from __future__ import annotations

from functools import partial
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.stats.intervals import Floats, diverges, p_more_divergence
from benchmark.stats.planning import seeds_to_decide
from benchmark.stats.reproduction import (
    DRIFTED,
    LABORATORY,
    REPRODUCED,
    SPREAD,
    STANDING,
    UNTESTED,
    Evidence,
    TestResult,
    compare,
    marks,
    tipping_points,
)
from benchmark.verdicts.pair_tests import EQUIVALENCE, TESTS, Found
from benchmark.verdicts.verdicts import BY_TEST, OPEN, Reason


@TESTS.register(EQUIVALENCE, display="Equivalence within the margin")
def equivalence(rows: pd.DataFrame, level: float) -> Found:
    """Return both tests of each number of a family, the reason, and how far the verdict stands."""
    evidence, test, worlds = tests_of(rows, level)
    why = reasons(rows, test, level)
    word = np.array([reason.word for reason in why])
    by_test = np.array([reason in BY_TEST for reason in why])
    is_open = np.array([reason in OPEN for reason in why])
    decided = by_test & np.isin(word, (REPRODUCED, DRIFTED))
    planned = int(rows["planned"].sum())
    changed = {name: world.verdict != word for name, world in worlds.items()}
    falls = np.any([changed[name] for name in STANDING], axis=0)
    stands = (~falls).astype(object)
    stands[~decided] = None
    tips = dict.fromkeys(("tip_laboratory", "tip_ratio"), np.full(len(rows), nan))
    if not rows["frozen"].any():
        tips = _tipping_points(evidence, level, planned)
    size = max(planned, int(np.isfinite(test.p_drift).sum()))
    needed = seeds_to_decide(evidence, family=size, alpha=level)
    changes_under = []
    for at, is_decided in enumerate(decided):
        names = [name for name in changed if is_decided and changed[name][at]]
        changes_under.append(" ".join(names))
    tested = test.verdict != UNTESTED
    columns = {
        "difference": test.difference,
        "case": test.case,
        "se": np.where(tested, test.se, nan),
        "df": np.where(tested, test.df, nan),
        "ci_low": test.low,
        "ci_high": test.high,
        "p_equivalence": test.p_equivalence,
        "p_drift": test.p_drift,
        "p_holm": test.p_holm,
        **{name: np.where(by_test, values, nan) for name, values in tips.items()},
        "family_size": size,
        "seeds_to_decide": np.where(is_open, needed, nan),
        "stands": stands,
        "changes_under": changes_under,
    }
    return Found(columns, why)


def tests_of(
    rows: pd.DataFrame, level: float
) -> tuple[Evidence, TestResult, dict[str, TestResult]]:
    """Return the evidence on a family, its tests, and those in the world of each mark."""
    planned = int(rows["planned"].sum())
    evidence = evidence_of(rows)
    worlds = marks(evidence, published=~rows["frozen"], alpha=level, planned=planned)
    return evidence, compare(evidence, level, planned), worlds


def _tipping_points(evidence: Evidence, level: float, planned: int) -> dict[str, Floats]:
    """Return both tipping points of each number of a printed table, by the names of a verdict."""
    of_mark = partial(tipping_points, evidence, alpha=level, planned=planned)
    ratio = np.sqrt(np.asarray(evidence.reference_variance) / np.asarray(evidence.variance))
    assumed = np.where(np.isfinite(ratio), ratio, 1.0)
    return {"tip_laboratory": of_mark(LABORATORY), "tip_ratio": assumed * of_mark(SPREAD)}


def evidence_of(rows: pd.DataFrame, *, plain: bool = False) -> Evidence:
    """Return rows of ``frame_of`` as evidence; ``plain``: with each cell's own spread, unshared."""
    spread = "own" if plain else "spread"
    df = "own_df" if plain else "df"
    from_pairs = rows.reference_mean + rows.paired_mean
    return Evidence(
        ours=np.where(rows.paired_n > 0, from_pairs, rows.ours_mean),
        ours_n=np.where(rows.ours_n > 0, rows.ours_n, nan),
        reference=rows.reference_mean,
        variance=rows[f"ours_{spread}"] ** 2,
        df=rows[f"ours_{df}"],
        reference_n=rows.reference_n,
        reference_variance=rows[f"reference_{spread}"] ** 2,
        reference_df=rows[f"reference_{df}"],
        paired_n=rows.paired_n,
        paired_variance=rows[f"paired_{spread}"] ** 2,
        paired_df=rows[f"paired_{df}"],
        identical=rows.identical,
        margin=rows.margin,
        slack=np.nan_to_num(rows.rounding),
    )


def reasons(rows: pd.DataFrame, test: TestResult, level: float) -> NDArray[np.object_]:
    """Return the ``Reason`` of each verdict. Reasons that need no test are asked first.

    Divergence decides if one side diverges and the other does not, or if every run of both sides
    diverged.
    """
    runs = rows[["n_diverged", "n_ended", "then_diverged", "then_n"]].astype(int)
    now = list(zip(runs.n_diverged, runs.n_ended, strict=True))
    then_runs = runs.then_diverged + runs.then_n
    then = list(zip(runs.then_diverged, then_runs, strict=True))
    ours_lost = np.array([diverges(*counts, level) for counts in now])
    theirs_lost = np.array([diverges(*counts, level) for counts in then])
    always = (rows.n_ok == 0) & (rows.then_n == 0)
    cured = theirs_lost & ~ours_lost & (rows.n_ended > 0)
    surely = [
        is_cured and p_more_divergence(before, after) <= level
        for is_cured, before, after in zip(cured, then, now, strict=True)
    ]
    none = rows.ours_n == 0
    margin = rows.margin
    cases = {
        Reason.NOT_MATCHED: rows.note != "",
        Reason.BOTH_DIVERGE: ours_lost & theirs_lost & always,
        Reason.OURS_DIVERGE: ours_lost & ~theirs_lost,
        Reason.THEIRS_DIVERGED: np.array(surely),
        Reason.PERHAPS_DIVERGED: cured & (rows.then_n == 0),
        Reason.TOO_FEW: none & (rows.n_diverged > 0) & (rows.n_ok == 0),
        Reason.NO_METRIC: none & (rows.n_ok > 0),
        Reason.NOT_FINISHED: none,
        Reason.INSIDE: test.verdict == REPRODUCED,
        Reason.ABOVE: (test.verdict == DRIFTED) & (test.difference > 0),
        Reason.BELOW: test.verdict == DRIFTED,
        Reason.ONE_RUN: (test.verdict == UNTESTED) & (rows.ours_n == 1),
        Reason.NO_SPREAD: test.verdict == UNTESTED,
        Reason.BEYOND_ALONE: (test.low > margin) | (test.high < -margin),
        Reason.TOO_WIDE: (test.low < -margin) & (test.high > margin),
    }
    choices: list[Any] = [*cases, Reason.ON_THE_EDGE]
    why = np.select(list(cases.values()), choices[:-1], choices[-1])
    return np.asarray(why, object)
