"""Paired t-tests: under one seed, losses share split, initial weights, batches, augmentation."""

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmark.stats.intervals import Floats, holm, mean_sd
from benchmark.stats.planning import detectable_shift
from benchmark.stats.samples import BySeed, moderate

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
    shifts = list(map(detectable_shift, table["df"], alpha / size))
    return table.assign(
        p_holm=p_holm,
        family_size=size,
        significant=p_holm <= alpha,
        detectable=table["se"] * shifts,
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
    by_group = sorted(table.groupby(level=GROUP).indices.items())
    groups = [list(map(int, rows)) for _, rows in by_group]
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
        pairs += [("pairs", "", *both) for both in itertools.combinations(rows, 2)]
        for step, loss, against in links:
            if loss in row_of and against in row_of:
                pairs.append(("ablation", step, row_of[loss], row_of[against]))
    if not pairs:
        return pd.DataFrame()
    compared = pd.DataFrame(pairs, columns=["kind", "step", "first", "second"])
    first = compared["first"].to_numpy()
    second = compared["second"].to_numpy()
    values = table.to_numpy(float)
    shared = np.full((2, len(values), len(values)), np.nan)  # variance and df of each pair
    blocked = np.full(shared.shape[1:], np.nan)
    places = table.groupby(level=PLACE).ngroup().to_numpy()
    pairs_of_place: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for rows in groups:
        blocked[np.ix_(rows, rows)] = blocked_p(values[rows])
        pairs_of_place[places[rows[0]]] += itertools.combinations(rows, 2)
    for pairs_in_place in filter(None, pairs_of_place.values()):
        one, two = np.array(pairs_in_place).T
        shared[:, one, two] = shared_variances(values[one] - values[two])
        shared[:, two, one] = shared[:, one, two]
    variance, df = shared[:, first, second]
    tests = paired_tests(values[first], values[second], alpha, (variance, df))
    cells = table.index[first].to_frame(index=False)
    other_losses = table.index[second].get_level_values("loss")
    tests = tests.assign(against=other_losses, p_blocked=blocked[first, second])
    return pd.concat([cells, compared[["kind", "step"]], tests], axis=1)


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


def against_default(scores: Sequence[BySeed], default: BySeed, alpha: float = 0.05) -> pd.DataFrame:
    """Return the test of each of ``scores`` (by seed) against ``default``, with Holm's correction.

    Columns are ``TEST`` and those of ``corrected``. Scores that equal the default have the note
    alone.
    """
    by_seed = pd.DataFrame([*scores, default], dtype=float).sort_index(axis="columns")
    first = by_seed.to_numpy()[:-1]
    second = np.broadcast_to(by_seed.iloc[-1], first.shape)
    is_default = np.array([variant == default for variant in scores], bool)
    shared = shared_variances(np.where(is_default[:, None], np.nan, first - second))
    tests = paired_tests(first, second, alpha, shared)
    tests.loc[is_default, tests.columns.drop("note")] = np.nan
    return corrected(tests.assign(family="sweep"), alpha).drop(columns="family")
