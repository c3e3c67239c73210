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
PLACE = ["dataset", "setting", "split", "metric"]  # pairs of one place share a spread
# Columns of a test. A number that cannot be computed is NaN.
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

    ``first``, ``second`` (T, S): scores by seed, NaN for a seed without a score. Only seeds that
    both have are used. ``shared`` are the variances (T,) of one difference by seed, moderated with
    sister pairs, and their degrees of freedom. Without ``shared`` each pair has its own variance,
    and the test is the plain one. ``p_plain`` is always of the plain test. ``p_blocked`` is left to
    ``compare``, which sees all losses. One pair of scores, and identical runs, give a difference
    and no test. ``d_z`` is unbiased (Hedges 1981), and NaN for one degree of freedom.
    """
    in_first = np.isfinite(first)
    in_second = np.isfinite(second)
    both = in_first & in_second
    first = np.where(both, first, np.nan)
    second = np.where(both, second, np.nan)
    n = both.sum(axis=1)
    plain_df = n - 1.0
    difference, sd = mean_sd(first - second)
    variance, df = shared or (sd**2, plain_df)
    with np.errstate(invalid="ignore", divide="ignore"):
        differs = (sd > 0) | (difference != 0)
        testable = (n > 1) & (variance > 0) & differs
        se = np.where(testable, np.sqrt(variance / n), np.nan)
        df = np.where(testable, df, np.nan)
        t = difference / se
        plain = np.where(sd > 0, difference / (sd / np.sqrt(n)), np.nan)
        d_z = np.where(sd > 0, difference / sd * _unbiased(plain_df), np.nan)
    half = stats.t.ppf(1 - alpha / 2, df) * se
    mean_first, _ = mean_sd(first)
    mean_second, _ = mean_sd(second)
    seeds_first = in_first.sum(axis=1)
    seeds_second = in_second.sum(axis=1)
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
        "p_plain": 2 * stats.t.sf(np.abs(plain), np.maximum(plain_df, 1)),
        "p_blocked": np.full(len(n), np.nan),
        "d_z": d_z,
        "note": list(map(_note, n, seeds_first, seeds_second, difference, sd)),
    }
    return pd.DataFrame(columns)


def _unbiased(df: Floats) -> Floats:
    """Return Hedges' factor (1981) of an effect size; NaN for one degree of freedom or none."""
    df = np.where(df > 1, df, np.nan)
    ratio = np.exp(special.gammaln(df / 2) - special.gammaln((df - 1) / 2))
    return np.asarray(ratio / np.sqrt(df / 2))


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
    _, sd = mean_sd(differences)
    n = np.isfinite(differences).sum(axis=1)
    moderated = moderate(sd**2, n - 1.0)
    return moderated.variance, moderated.df


def corrected(table: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Return ``table`` of tests with p_holm, family_size, significant and detectable.

    Tests with one value of the column ``family`` are corrected together. ``detectable`` is the
    smallest true difference that the test finds with probability 0.8 at the strictest level of the
    correction.
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
    table = scores.pivot(index=[*GROUP, "loss"], columns="seed", values="value")
    return table.sort_index()


def compare(
    scores: pd.DataFrame, baseline: str | None, alpha: float = 0.05, ablation: Sequence[str] = ()
) -> pd.DataFrame:
    """Return group, kind, step, loss, against and the test of each pair that is compared.

    ``scores`` has one row per run and metric (``RunTable.test_scores``). The kinds are "baseline"
    (every loss against it), "pairs" (all pairs of losses) and "ablation" (each loss of ``ablation``
    against its predecessor, with the steps "1", "2", ..., and the last against the first, "total").
    Variances are moderated over all pairs of losses of a place, at all batch sizes.
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
        for one, two in itertools.combinations(rows, 2):
            pairs.append(("pairs", "", one, two))
        for step, loss, against in links:
            if loss in row_of and against in row_of:
                pairs.append(("ablation", step, row_of[loss], row_of[against]))
    if not pairs:
        return pd.DataFrame()
    compared = pd.DataFrame(pairs, columns=["kind", "step", "first", "second"])
    first = compared["first"].to_numpy()
    second = compared["second"].to_numpy()
    values = table.to_numpy(float)
    places = table.groupby(level=PLACE).ngroup().to_numpy()
    size = (len(values), len(values))
    variance = np.full(size, np.nan)
    df = np.full(size, np.nan)
    blocked = np.full(size, np.nan)
    all_pairs: list[tuple[int, int]] = []
    for rows in groups:
        blocked[np.ix_(rows, rows)] = blocked_p(values[rows])
        all_pairs += itertools.combinations(rows, 2)
    ones, twos = np.array(all_pairs).T
    for place in np.unique(places[ones]):
        in_place = places[ones] == place
        one = ones[in_place]
        two = twos[in_place]
        variance[one, two], df[one, two] = shared_variances(values[one] - values[two])
    lower = np.minimum(first, second)
    upper = np.maximum(first, second)
    shared = (variance[lower, upper], df[lower, upper])
    tests = paired_tests(values[first], values[second], alpha, shared)
    cells = (
        table.index[first]
        .to_frame(index=False)
        .assign(
            kind=compared["kind"],
            step=compared["step"],
            against=table.index[second].get_level_values("loss"),
        )
    )
    return pd.concat([cells, tests.assign(p_blocked=blocked[first, second])], axis=1)


def blocked_p(scores: Floats) -> Floats:
    """Return the two-sided p (L, L) of each pair of losses of ``scores`` (L, S), the seed as block.

    This additive analysis of variance (Fisher 1935) assumes that all losses are equally noisy. The
    paired test does not, so this p is shown beside it and decides nothing. Only seeds count that
    all losses with a run share. p is NaN for a loss without a run, and with fewer than two seeds.
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
    of_seeds = shared.mean(axis=0)
    residual = shared - means[:, None] - of_seeds + shared.mean()
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

    Columns are ``TEST`` and those of ``corrected``. Scores that equal the default have the note
    alone.
    """
    seeds = sorted(set().union(default, *scores))
    rows = []
    for by_seed in (*scores, default):
        rows.append([by_seed.get(seed, np.nan) for seed in seeds])
    *variants, default_row = np.array(rows, dtype=float)
    first = np.stack(variants)
    second = np.broadcast_to(default_row, first.shape)
    is_default = np.array([variant == default for variant in scores], bool)
    shared = shared_variances(np.where(is_default[:, None], np.nan, first - second))
    tests = paired_tests(first, second, alpha, shared)
    tests.loc[is_default, tests.columns.drop("note")] = np.nan
    return corrected(tests.assign(family="sweep"), alpha).drop(columns="family")
