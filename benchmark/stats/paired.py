"""Paired t-tests: under one seed, losses share split, initial weights, batches, augmentation."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmark.stats.intervals import Floats, holm, mean_sd
from benchmark.stats.planning import detectable_shift
from benchmark.stats.samples import moderate

GROUP = ["dataset", "setting", "batch_size", "split", "metric"]
PLACE = [name for name in GROUP if name != "batch_size"]  # pairs of one place share a spread
# Columns of a test; NaN where nothing can be computed.
TEST = [
    "n",
    "mean",
    "mean_against",
    "difference",
    "sd_difference",
    "se",
    "df",
    "ci_low",
    "ci_high",
    "t",
    "p",
    "p_plain",
    "p_blocked",
    "d_z",
    "note",
]


def paired_tests(
    first: Floats, second: Floats, alpha: float = 0.05, shared: tuple[Floats, Floats] | None = None
) -> pd.DataFrame:
    """Return the paired t-tests (columns ``TEST``) of T pairs of losses, all at once.

    ``first``, ``second`` (T, S): scores by seed, NaN where a seed has none. Only seeds that both
    have are used. ``shared`` are the variances (T,) of one difference by seed, moderated with
    sister pairs, and their degrees of freedom; without them each pair has its own, and the test is
    the plain one, whose p is ``p_plain`` in any case. ``p_blocked`` is left to ``compare``, which
    sees all losses. One pair of scores gives a difference and no test, nor do identical runs.
    ``d_z`` is unbiased (Hedges 1981); NaN for one degree of freedom.
    """
    first = np.where(np.isfinite(first), first, np.nan)
    second = np.where(np.isfinite(second), second, np.nan)
    both = np.isfinite(first) & np.isfinite(second)
    n = both.sum(axis=1)
    difference, sd = mean_sd(first - second)
    variance, df = shared or (sd**2, n - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        testable = (n > 1) & (variance > 0) & ((sd > 0) | (difference != 0))
        se = np.where(testable, np.sqrt(variance / n), np.nan)
        df = np.where(testable, df, np.nan)
        t = difference / se
        plain = np.where(sd > 0, difference / (sd / np.sqrt(n)), np.nan)
        plain_df = np.where(n - 1.0 > 1, n - 1.0, np.nan)
        ratio = np.exp(special.gammaln(plain_df / 2) - special.gammaln((plain_df - 1) / 2))
        unbiased = ratio / np.sqrt(plain_df / 2)
        d_z = np.where(sd > 0, difference / sd * unbiased, np.nan)
    half = stats.t.ppf(1 - alpha / 2, df) * se
    seeds_first = np.isfinite(first).sum(axis=1)
    seeds_second = np.isfinite(second).sum(axis=1)
    mean_first, _ = mean_sd(np.where(both, first, np.nan))
    mean_second, _ = mean_sd(np.where(both, second, np.nan))
    columns = {
        "n": n,
        "mean": mean_first,
        "mean_against": mean_second,
        "difference": difference,
        "sd_difference": sd,
        "se": se,
        "df": df,
        "ci_low": difference - half,
        "ci_high": difference + half,
        "t": t,
        "p": 2 * stats.t.sf(np.abs(t), df),
        "p_plain": 2 * stats.t.sf(np.abs(plain), np.maximum(n - 1.0, 1)),
        "p_blocked": np.full(len(n), np.nan),
        "d_z": d_z,
        "note": list(map(_note, n, seeds_first, seeds_second, difference, sd)),
    }
    return pd.DataFrame(columns, columns=TEST)


def _note(count: int, one: int, other: int, mean: float, spread: float) -> str:
    notes = []
    if count < max(one, other):
        notes.append(f"{count} common seeds of {one} and {other}")
    if count == 0:
        notes.append("no common seed, no test")
    elif count == 1:
        notes.append("one pair, no test")
    elif spread == 0 and mean == 0:
        notes.append("identical runs, no test")
    elif spread == 0:
        notes.append("the same difference at every seed")
    return "; ".join(notes)


def shared_variances(differences: Floats) -> tuple[Floats, Floats]:
    """Return variance (T,) and df of one difference by seed (T, S), moderated over the rows."""
    sd = mean_sd(differences)[1]
    n = np.isfinite(differences).sum(axis=1)
    return moderate(sd**2, n - 1.0)[:2]


def corrected(table: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Return ``table`` of tests with p_holm, family_size, significant and detectable.

    Tests of one ``family``, a column, are corrected together. ``detectable`` is the smallest true
    difference that the test finds with probability 0.8 at the strictest level of that correction.
    """
    family = table.groupby("family", sort=False)["p"]
    size = family.transform("count")
    p_holm = family.transform(lambda column: holm(column.to_numpy()))
    detectable = []
    for se, df, count in zip(table["se"], table["df"], size, strict=True):
        shift = np.nan
        if np.isfinite(se):
            shift = se * detectable_shift(df, alpha / count)
        detectable.append(shift)
    return table.assign(
        p_holm=p_holm, family_size=size, significant=p_holm <= alpha, detectable=detectable
    )


def by_seed(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with one row per group and loss and one column per seed."""
    return scores.pivot(index=[*GROUP, "loss"], columns="seed", values="value").sort_index()


def compare(
    scores: pd.DataFrame, baseline: str | None, alpha: float = 0.05, ablation: Sequence[str] = ()
) -> pd.DataFrame:
    """Return group, kind, step, loss, against and the test of each pair that is compared.

    ``scores`` is one row per run and metric (``RunTable.test_scores``). Kinds: "baseline", every
    loss against it; "pairs", all of them; "ablation", each loss of ``ablation`` against its
    predecessor (steps "1", "2", ...) and the last against the first ("total"). Variances are
    moderated over all pairs of losses of a place, at all batch sizes.
    """
    table = by_seed(scores)
    losses = table.index.get_level_values("loss").tolist()
    groups = []
    for _, rows in sorted(table.groupby(level=GROUP).indices.items()):
        groups.append(list(map(int, rows)))
    links = []
    for number, (before, loss) in enumerate(itertools.pairwise(ablation), 1):
        links.append((str(number), loss, before))
    if len(links) > 1:
        links.append(("total", ablation[-1], ablation[0]))
    pairs: list[tuple[str, str, int, int]] = []
    for rows in groups:
        row_of = {losses[row]: row for row in rows}
        base = row_of.get(baseline)
        if base is not None:
            pairs += [("baseline", "", row, base) for row in rows if row != base]
        pairs += [("pairs", "", one, two) for one, two in itertools.combinations(rows, 2)]
        for step, loss, against in links:
            if loss in row_of and against in row_of:
                pairs.append(("ablation", step, row_of[loss], row_of[against]))
    if not pairs:
        return pd.DataFrame()
    kinds, steps, first, second = (list(column) for column in zip(*pairs, strict=True))
    values = table.to_numpy(float)
    places = table.groupby(level=PLACE).ngroup().to_numpy()
    size = (len(values), len(values))
    variance, df, blocked = (np.full(size, np.nan) for _ in range(3))
    for rows in groups:
        blocked[np.ix_(rows, rows)] = blocked_p(values[rows])
    every = np.array([pair for rows in groups for pair in itertools.combinations(rows, 2)])
    places_of_pairs = places[every[:, 0]]
    for place in np.unique(places_of_pairs):
        one, two = every[places_of_pairs == place].T
        variance[one, two], df[one, two] = shared_variances(values[one] - values[two])
    at = np.minimum(first, second), np.maximum(first, second)
    shared = (variance[at], df[at])
    tests = paired_tests(values[first], values[second], alpha, shared)
    rivals = table.index[second].get_level_values("loss")
    where = table.index[first].to_frame(index=False)
    where = where.assign(kind=kinds, step=steps, against=rivals)
    return pd.concat([where, tests.assign(p_blocked=blocked[first, second])], axis=1)


def blocked_p(scores: Floats) -> Floats:
    """Return the two-sided p (L, L) of each pair of losses of ``scores`` (L, S), the seed as block.

    This additive analysis of variance (Fisher 1935) assumes that all losses are equally noisy, so
    it is shown beside the paired test, which does not, and decides nothing. Only seeds count that
    all losses with any run share; p is NaN without a run, or where fewer than two seeds are left.
    """
    p = np.full((len(scores), len(scores)), np.nan)
    run = np.flatnonzero(np.isfinite(scores).any(axis=1))
    complete = np.flatnonzero(np.isfinite(scores[run]).all(axis=0))
    shared = scores[np.ix_(run, complete)]
    losses, seeds = shared.shape
    df = (losses - 1) * (seeds - 1)
    if df < 1:
        return p
    means = shared.mean(axis=1)
    residual = shared - means[:, None] - shared.mean(axis=0) + shared.mean()
    squares = (residual**2).sum()
    se = np.sqrt(2 * squares / df / seeds)
    if se > 0:
        t = np.abs(np.subtract.outer(means, means)) / se
        p[np.ix_(run, run)] = 2 * stats.t.sf(t, df)
    return p


def against_default(
    scores: Sequence[Mapping[int, float]], default: Mapping[int, float], alpha: float = 0.05
) -> pd.DataFrame:
    """Return the test of each of ``scores`` (by seed) against ``default``, with Holm's correction.

    Columns ``TEST`` and those of ``corrected``; nothing but the note for scores that are the
    default's own.
    """
    seeds = sorted(set().union(default, *scores))
    rows = []
    for variant in scores:
        rows.append([variant.get(seed, np.nan) for seed in seeds])
    first = np.array(rows, dtype=float)
    default_row = np.array([default.get(seed, np.nan) for seed in seeds], dtype=float)
    second = np.broadcast_to(default_row, first.shape)
    is_default = np.array([variant == default for variant in scores], bool)
    shared = shared_variances(np.where(is_default[:, None], np.nan, first - second))
    tests = paired_tests(first, second, alpha, shared)
    tests.loc[is_default, tests.columns.drop("note")] = np.nan
    return corrected(tests.assign(family="sweep"), alpha).drop(columns="family")
