"""Challenges drawn from a bank of trained runs: how often is a twin, or a worse loss, called?

A twin is the same loss under another name, which draws other trials. A worse loss is the same loss
trained on disturbed labels. Choice, tests and ranks are those of the suite. ``bank.py`` has trained
the bank.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from error_rates.rule import Rate, share
from numpy.typing import NDArray
from scipy import stats

from benchmark.core.seeding import derive
from benchmark.stats.budgets import DRAWS as REDRAWN
from benchmark.stats.budgets import (
    _moves,
    _ranks,
    best_trial,
    order_under,
    resampled,
    seeds_drawn,
)
from benchmark.stats.intervals import Floats, holm
from benchmark.stats.paired import paired_tests, shared_variances
from benchmark.stats.planning import detectable_shift

BANK = Path(__file__).with_name("bank.csv")
ALPHA = 0.05
BUDGETS = (1, 4, 16)
FINAL_SEEDS = 5
FIELD = 16  # losses of the shipped field
DRAWS = 2000
QUARTER = 4  # of the challenges have their ranks looked at, and a field of twins
GOAL = 0.06  # twins of which one is called better, at most
ENOUGH = 16  # trials from which on a challenge cautions no more
SHARES = (0.0, 0.1, 0.2, 0.3)  # of the challenger's training labels that are disturbed


class Bank(NamedTuple):
    """Scores in points: of T settings, the published one first.

    folds    (T, F): on held-out classes
    finals   (T, S): on the test classes, by seed
    """

    folds: Floats
    finals: Floats


class Drawn(NamedTuple):
    """D challenges among L losses, the challenger first.

    trials   (D, L, K): settings that each loss tries, in their order
    seeds    (D, S): of the final runs, the same for all losses
    chosen   {budget: (D, L)}: the best setting of the first trials
    finals   {budget: (D, L, S)}: its scores on the test classes
    means    {budget: (D, L)}: its mean over all seeds of the bank
    spreads  {budget: (D, L - 1)}: standard deviation, over all these seeds, of the difference
             between another loss and the challenger
    """

    trials: NDArray[np.int64]
    seeds: NDArray[np.int64]
    chosen: dict[int, NDArray[np.int64]]
    finals: dict[int, Floats]
    means: dict[int, Floats]
    spreads: dict[int, Floats]


def read_banks(path: Path = BANK) -> dict[float, Bank]:
    """Return the bank for each share of disturbed labels; a diverged run scores 0."""
    table = pd.read_csv(path).sort_values(["trial", "first"])
    banks = {}
    for disturbed, rows in table.groupby("disturbed"):
        settings = rows["trial"].nunique()
        by_seeds = rows.groupby("first")["trial"].transform("count")
        rows = rows[by_seeds == settings]  # seeds of a bank that is being trained are left out
        has_folds = rows["first"] == 1
        folds = rows[has_folds].filter(like="fold").fillna(0.0)
        finals = rows.filter(like="seed").fillna(0.0).to_numpy()
        of_settings = finals.reshape(settings, -1)
        banks[float(disturbed)] = Bank(100 * folds.to_numpy(), 100 * of_settings)
    return banks


def draw(losses: Sequence[Bank], draws: int, *name: str) -> Drawn:
    """Return challenges among losses; two losses share no trial, more of them may.

    Seeds are drawn with replacement: without it, five of twenty would spread too little.
    """
    rng = np.random.default_rng(derive(0, "challenges", *name))
    most = max(BUDGETS)
    common = min(bank.finals.shape[1] for bank in losses)
    trials = np.empty((draws, len(losses), most), int)
    seeds = np.empty((draws, FINAL_SEEDS), int)
    for number in range(draws):
        seeds[number] = rng.integers(common, size=FINAL_SEEDS)
        taken: NDArray[np.int64] = np.empty(0, int)
        for loss, bank in enumerate(losses):
            free = np.setdiff1d(np.arange(1, len(bank.folds)), taken)
            trials[number, loss] = rng.permutation(free)[:most]
            if len(losses) == 2:
                taken = trials[number, loss]
    drawn = Drawn(trials, seeds, {}, {}, {}, {})
    for budget in BUDGETS:
        best = [choices(bank, trials[:, loss], budget) for loss, bank in enumerate(losses)]
        finals = []
        all_seeds = []
        for bank, settings in zip(losses, best, strict=True):
            finals.append(bank.finals[settings[:, None], seeds])
            all_seeds.append(bank.finals[settings, :common])
        ours, *others = all_seeds
        gaps = [scores - ours for scores in others]
        drawn.chosen[budget] = np.stack(best, axis=1)
        drawn.finals[budget] = np.stack(finals, axis=1)
        drawn.means[budget] = np.stack([scores.mean(axis=1) for scores in all_seeds], axis=1)
        drawn.spreads[budget] = np.stack([gap.std(axis=1) for gap in gaps], axis=1)
    return drawn


def choices(bank: Bank, trials: NDArray[np.int64], budget: int) -> NDArray[np.int64]:
    """Return the setting (D,) that is best of the first ``budget`` of ``trials`` (D, K)."""
    held_out = bank.folds.mean(axis=1)
    numbers = np.arange(1, trials.shape[1] + 1)
    chosen = []
    for settings in trials:
        best = best_trial(pd.Series(held_out[settings], numbers), budget)
        chosen.append(settings[best - 1])
    return np.array(chosen)


class Compared(NamedTuple):
    """Tests of the other losses against the challenger after the last budget, (D, L - 1).

    better       the other is called better
    worse        the other is called worse
    detectable   the difference that the suite states, points
    se           standard error of a difference, points
    level        of the strictest test of the family
    """

    better: NDArray[np.bool_]
    worse: NDArray[np.bool_]
    detectable: Floats
    se: Floats
    level: float


def compared(drawn: Drawn, trials: int) -> Compared:
    """Return the tests of ``challenge --trials``: one family over its budgets and losses."""
    p = []
    for budget in [each for each in BUDGETS if each <= trials]:
        finals = drawn.finals[budget]
        draws, losses, seeds = finals.shape
        first, second = np.triu_indices(losses, 1)
        gaps = finals[:, second] - finals[:, first]
        by_place = [shared_variances(each) for each in gaps]
        against = first == 0
        variance = np.array([each[0] for each in by_place])[:, against].ravel()
        df = np.array([each[1] for each in by_place])[:, against].ravel()
        ours = np.broadcast_to(finals[:, :1], (draws, losses - 1, seeds)).reshape(-1, seeds)
        others = finals[:, 1:].reshape(-1, seeds)
        table = paired_tests(others, ours, ALPHA, (variance, df))
        p.append(table["p"].to_numpy().reshape(draws, losses - 1))
    family = np.concatenate(p, axis=1)
    significant = (holm(family) <= ALPHA)[:, 1 - losses :]
    level = ALPHA / family.shape[1]
    difference = table["difference"].to_numpy().reshape(significant.shape)
    se = table["se"].to_numpy().reshape(significant.shape)
    df = table["df"].to_numpy().reshape(significant.shape)
    with np.errstate(invalid="ignore"):  # identical runs have no test
        shifts = np.vectorize(detectable_shift, otypes=[float])(df, level)
    return Compared(
        better=significant & (difference > 0),
        worse=significant & (difference < 0),
        detectable=se * shifts,
        se=se,
        level=level,
    )


def ranks_apart(losses: Sequence[Bank], drawn: Drawn, trials: int) -> NDArray[np.bool_]:
    """Return (D,): do the intervals of the two ranks of a challenge leave each other out?

    They are those of ``budget_ranks.csv``, under seeds and trials drawn again.
    """
    rng = np.random.default_rng(derive(0, "ranks", trials))
    apart = []
    for number, seeds in enumerate(drawn.finals[trials]):
        folds = {}
        redrawn = {}
        for loss, bank in enumerate(losses):
            settings = drawn.trials[number, loss, :trials]
            name = f"loss{loss}"
            folds[name] = bank.folds[np.r_[0, settings]]
            redrawn[name] = resampled(folds[name][1:], REDRAWN, rng)
        level = seeds.mean(axis=1)
        both = seeds_drawn(seeds, REDRAWN, rng) + _moves(folds, redrawn, trials)
        order = order_under(level, both, ALPHA)
        ranks = _ranks(seeds, level, order, ALPHA)
        first = ranks["rank"].argmin()
        apart.append(ranks["rank_high"][first] < ranks["rank_low"][1 - first])
    return np.array(apart)


def of_equal_folds(bank: Bank) -> Bank:
    """Return the bank with its folds moved to one mean; each trial's mean over folds stays."""
    means = bank.folds.mean(axis=0)
    return bank._replace(folds=bank.folds - means + means.mean())


def mean_power(difference: Floats | float, spreads: Floats, tests: Compared) -> float:
    """Return the mean probability that a test of two losses sees a true difference.

    It is 0.8 where the difference is the detectable one. ``spreads`` (D,) are the true standard
    deviations of a difference of one seed.
    """
    df = FINAL_SEEDS - 1
    shift = np.abs(difference) / spreads * np.sqrt(FINAL_SEEDS)
    critical = stats.t.isf(tests.level / 2, df)
    above = np.nan_to_num(stats.nct.sf(critical, df, shift), nan=1.0)  # NaN near 1
    below = np.nan_to_num(stats.nct.cdf(-critical, df, shift))
    return float(np.mean(above + below))


def rate(hits: NDArray[np.bool_]) -> Rate:
    """Return the share of challenges, with its 95% interval."""
    return share(hits, 0.95)


class TwinRates(NamedTuple):
    """Rates of twins after a number of trials.

    tested      one of two is called better by the paired test
    ranked      the intervals of their two ranks leave each other out
    levelled    the same, had both folds the same mean
    given, any  in a field of twins: a given one is called, and any is
    between     spread of the mean of a chosen setting, points
    within      spread of a difference of one seed, points
    """

    trials: int
    tested: Rate
    ranked: Rate
    levelled: Rate
    given: Rate
    any: Rate
    between: float
    within: float


def twin_rates(draws: int, trials: int) -> TwinRates:
    """Return the rates of twins after a number of trials."""
    bank = read_banks()[0.0]
    levelled = of_equal_folds(bank)
    two = draw([bank, bank], draws, "twins")
    of_two = compared(two, trials)
    fewer = two._replace(finals={trials: two.finals[trials][: draws // QUARTER]})
    many = draw([bank] * (FIELD + 1), draws // QUARTER, "field of twins")
    of_many = compared(many, trials)
    called = of_many.better | of_many.worse
    return TwinRates(
        trials=trials,
        tested=rate((of_two.better | of_two.worse)[:, 0]),
        ranked=rate(ranks_apart([bank, bank], fewer, trials)),
        levelled=rate(ranks_apart([levelled, levelled], fewer, trials)),
        given=rate(called[:, 0]),
        any=rate(called.any(axis=1)),
        between=float(two.means[trials].std()),
        within=float(np.sqrt(np.nanmean(of_two.se**2) * FINAL_SEEDS)),
    )


class WorseRates(NamedTuple):
    """Rates of a challenger whose training labels are disturbed, against the loss itself.

    difference   true difference of the two losses after these trials, points
    detectable   the median of what the suite states, points
    ordered      the means are in the right order
    seen         the test calls the right one better
    wrong        it calls the other one better
    stated       mean power that the suite states at the true difference of the losses
    of_settings  mean power that it states at the true difference of the two chosen settings
    right        the test calls the better one of the two chosen settings
    """

    disturbed: float
    trials: int
    difference: float
    detectable: float
    ordered: Rate
    seen: Rate
    wrong: Rate
    stated: float
    of_settings: float
    right: Rate


def worse_rates(draws: int = DRAWS, budgets: Sequence[int] = BUDGETS) -> list[WorseRates]:
    """Return the rates for each share of disturbed labels and budget."""
    banks = read_banks()
    rates = []
    for disturbed in SHARES:
        challenger = banks[disturbed]
        drawn = draw([challenger, banks[0.0]], draws, "disturbed", str(disturbed))
        for trials in budgets:
            tests = compared(drawn, trials)
            gaps = drawn.means[trials][:, 1] - drawn.means[trials][:, 0]
            finals = drawn.finals[trials].mean(axis=2)
            better = tests.better[:, 0]
            worse = tests.worse[:, 0]
            spreads = drawn.spreads[trials][:, 0]
            found = WorseRates(
                disturbed=disturbed,
                trials=trials,
                difference=float(gaps.mean()),
                detectable=float(np.nanmedian(tests.detectable)),
                ordered=rate(finals[:, 1] > finals[:, 0]),
                seen=rate(better),
                wrong=rate(worse),
                stated=mean_power(gaps.mean(), spreads, tests),
                of_settings=mean_power(gaps, spreads, tests),
                right=rate(np.where(gaps > 0, better, worse)),
            )
            rates.append(found)
    return rates
