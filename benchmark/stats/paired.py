"""Paired t-tests: under one seed, losses share split, initial weights, batches, augmentation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.stats.intervals import mean_sd, t_half_widths
from benchmark.stats.multiple import holm
from benchmark.stats.power import detectable_effect

GROUP = ["dataset", "setting", "batch_size", "split", "metric"]
# Columns of a test; NaN where nothing can be computed.
TEST = [
    "n", "mean", "mean_against", "difference", "sd_difference", "ci_low", "ci_high", "t", "p",
    "d_z", "detectable", "note",
]  # fmt: skip


def paired_tests(first: np.ndarray, second: np.ndarray, alpha: float = 0.05) -> pd.DataFrame:
    """Return the paired t-tests (columns ``TEST``) of T pairs of losses, all at once.

    ``first``, ``second`` (T, S): scores by seed, NaN where a seed has none. Only seeds that both
    have are used. One pair of scores gives a difference and no test; differences without any spread
    give no t statistic, because their error cannot be estimated.
    """
    first, second = (np.where(np.isfinite(side), side, np.nan) for side in (first, second))
    both = np.isfinite(first) & np.isfinite(second)
    n = both.sum(axis=1)
    difference, sd = mean_sd(first - second)
    half = t_half_widths(sd, n, 1 - alpha)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(sd > 0, difference / (sd / np.sqrt(n)), np.nan)
        d_z = np.where(sd > 0, difference / sd, np.nan)
    p = 2 * stats.t.sf(np.abs(t), np.maximum(n - 1, 1))
    effects = {count: detectable_effect(count, alpha) for count in np.unique(n).tolist()}
    detectable = np.where(sd > 0, sd * np.array([effects[count] for count in n.tolist()]), np.nan)
    columns = [
        n,
        mean_sd(np.where(both, first, np.nan))[0],
        mean_sd(np.where(both, second, np.nan))[0],
        difference,
        sd,
        difference - half,
        difference + half,
        t,
        p,
        d_z,
        detectable,
        _notes(n, np.isfinite(first).sum(axis=1), np.isfinite(second).sum(axis=1), difference, sd),
    ]
    return pd.DataFrame(dict(zip(TEST, columns, strict=True)))


def _notes(
    n: np.ndarray, first: np.ndarray, second: np.ndarray, difference: np.ndarray, sd: np.ndarray
) -> list[str]:
    notes = []
    for count, one, other, mean, spread in zip(n, first, second, difference, sd, strict=True):
        words = [f"{count} common seeds of {one} and {other}"] if count < max(one, other) else []
        if count == 0:
            words.append("no common seed, no test")
        elif count == 1:
            words.append("one pair, no test")
        elif spread == 0:
            same = "identical runs" if mean == 0 else "the same difference at every seed"
            words.append(f"{same}, no test")
        notes.append("; ".join(words))
    return notes


def by_seed(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with one row per group and loss and one column per seed."""
    return scores.pivot(index=[*GROUP, "loss"], columns="seed", values="value").sort_index()


def compare(scores: pd.DataFrame, baseline: str | None, alpha: float = 0.05) -> pd.DataFrame:
    """Return one row per tested pair: every loss against ``baseline``, and all pairs.

    ``scores`` is one row per run and metric (``RunTable.test_scores``). The family of a test is all
    tests of its kind on one dataset, split and metric: settings and batch sizes stand in the same
    table.
    """
    table = by_seed(scores)
    losses = table.index.get_level_values("loss").tolist()
    pairs: list[tuple[str, int, int]] = []
    for _, group in sorted(table.groupby(level=GROUP).indices.items()):
        rows = [int(row) for row in group]
        base = [row for row in rows if losses[row] == baseline]
        pairs += [("baseline", row, base[0]) for row in rows if base and row != base[0]]
        pairs += [("pairs", one, two) for one, two in itertools.combinations(rows, 2)]
    return tested(table, pairs, alpha)


def tested(table: pd.DataFrame, pairs: list[tuple[str, int, int]], alpha: float) -> pd.DataFrame:
    """Return group, kind, loss, against and the test of each (kind, row, row) of ``table``."""
    if not pairs:
        return pd.DataFrame()
    kinds, first, second = (list(column) for column in zip(*pairs, strict=True))
    values = table.to_numpy(float)
    where = table.index[list(first)].to_frame(index=False)
    where.insert(len(GROUP), "kind", kinds)
    where["against"] = table.index[second].get_level_values("loss")
    return pd.concat([where, paired_tests(values[first], values[second], alpha)], axis=1)


def against_default(
    scores: Sequence[Mapping[int, float]], default: Mapping[int, float], alpha: float = 0.05
) -> pd.DataFrame:
    """Return the test of each of ``scores`` (by seed) against ``default``, with Holm's correction.

    Columns ``TEST``, p_holm and significant; nothing but the note for scores that are the default's
    own.
    """
    seeds = sorted(set().union(default, *scores))
    first, second = (
        np.array([[each.get(seed, np.nan) for seed in seeds] for each in sides], dtype=float)
        for sides in (scores, [default] * len(scores))
    )
    tests = paired_tests(first, second, alpha)
    own = [each == default for each in scores]
    tests.loc[own, tests.columns.drop("note")] = np.nan
    tests["p_holm"] = holm(tests["p"])
    return tests.assign(significant=tests["p_holm"] <= alpha)
