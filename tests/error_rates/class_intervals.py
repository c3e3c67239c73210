"""Intervals of a score over classes: how often they hold the truth, and how wide they are.

The limits were set before any simulation: from some number of classes on, an interval holds the
truth in 92 % of draws in every world, with a median width of at most 1.5 times the true one; below
that number none is shown. The true width is that between the 2.5 % and 97.5 % quantiles of the
score itself over draws. A draw in which all classes score the same has no interval and does not
count.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmark.core.seeding import derive
from benchmark.stats.intervals import Floats, drawn_weights, percentile_interval
from benchmark.stats.queries import REPETITIONS, logit_interval

COVERAGE = 0.92
WIDTH = 1.5
CLASSES = (5, 10, 20, 50, 100)
MOST_EMBEDDED = 50  # classes of a world of embeddings, whose rows search each other
AT_ONCE = 100  # draws that are resampled together
TRUE_CLASSES = 400_000  # behind the truth of a world of independent classes
TRUE_ROWS = 320_000  # and in all the draws behind that of a world of embeddings
Draws = tuple[Floats, Floats]  # sums of the scores, and numbers of queries, both (draws, classes)
Ends = tuple[Floats, Floats]


class Sizes(NamedTuple):
    """Queries of a class: exp of a normal number, rounded, from 2 on."""

    median: float = 10.0
    log_sd: float = 0.0


EQUAL = Sizes()
FEW = Sizes(4.0, 0.4)  # as in Stanford Online Products
UNEQUAL = Sizes(10.0, 1.0)
WILD = Sizes(10.0, 1.5)


class Beta(NamedTuple):
    """A world whose classes are independent; the mean score of a class has a beta distribution.

    mean, sd     of the mean scores of classes
    hits         a query scores 0 or 1 (recall); else a beta of the same mean (average precision)
    correlation  of the logarithm of a class's size with its score, by ranks
    """

    hits: bool
    mean: float
    sd: float
    sizes: Sizes = EQUAL
    correlation: float = 0.0

    def draw(self, draws: int, classes: int, rng: np.random.Generator) -> Draws:
        """Return the draws of so many classes."""
        size, score = rng.standard_normal((2, draws, classes))
        score = self.correlation * size + np.sqrt(1 - self.correlation**2) * score
        numbers = np.exp(np.log(self.sizes.median) + self.sizes.log_sd * size)
        numbers = np.clip(np.rint(numbers), 2, 2000).astype(int)
        strength = self.mean * (1 - self.mean) / self.sd**2 - 1
        share = stats.norm.cdf(score)
        means = special.betaincinv(strength * self.mean, strength * (1 - self.mean), share)
        means = np.clip(means, 1e-6, 1 - 1e-6)
        if self.hits:
            sums = rng.binomial(numbers, means).astype(float)
        else:
            owner = np.repeat(np.arange(numbers.size), numbers.ravel())
            of_query = means.ravel()[owner]
            scores = rng.beta(3 * of_query, 3 * (1 - of_query))
            sums = np.bincount(owner, scores).reshape(numbers.shape)
        return sums, numbers.astype(float)

    def truth(self, classes: int) -> float:
        """Return the score of all classes, which does not depend on the number drawn."""
        return _score_of(self, 1, TRUE_CLASSES)


class Embedded(NamedTuple):
    """A world of embeddings: clouds of eight rows around centres; each row searches the others.

    noise   radius of a cloud; its logarithm has the sd 0.3 over classes
    metric  recall_at_1, map or map_at_r
    """

    metric: str
    noise: float
    width: int = 8

    def draw(self, draws: int, classes: int, rng: np.random.Generator) -> Draws:
        """Return the draws of so many classes."""
        size = 8
        labels = np.repeat(np.arange(classes), size)
        same = labels[:, None] == labels
        sums = np.empty((draws, classes))
        for draw in range(draws):
            radius = self.noise * np.exp(0.3 * rng.standard_normal(classes))
            rows = rng.standard_normal((classes, self.width))[labels]
            rows = rows + radius[labels, None] * rng.standard_normal(rows.shape)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            scores = rows @ rows.T
            np.fill_diagonal(scores, -2)
            if self.metric == "recall_at_1":
                found = same[np.arange(len(rows)), scores.argmax(axis=1)].astype(float)
            else:
                hits = np.take_along_axis(same, np.argsort(-scores, axis=1)[:, :-1], axis=1)
                if self.metric == "map_at_r":
                    hits = hits[:, : size - 1]
                precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
                found = (precision * hits).sum(axis=1) / (size - 1)
            sums[draw] = found.reshape(classes, size).sum(axis=1)
        return sums, np.full(sums.shape, float(size))

    def truth(self, classes: int) -> float:
        """Return the mean score of so many classes: more classes are more to confuse."""
        return _score_of(self, TRUE_ROWS // (8 * classes), classes)


World = Beta | Embedded


@cache
def _score_of(world: World, draws: int, classes: int) -> float:
    """Return the mean score over all queries of the draws."""
    rng = np.random.default_rng(derive(0, "truth", str(world)))
    sums, numbers = world.draw(draws, classes, rng)
    return float(sums.sum() / numbers.sum())


WORLDS: dict[str, World] = {
    "R@1 50, sd 20": Beta(True, 0.5, 0.2),
    "R@1 75, sd 10": Beta(True, 0.75, 0.1),
    "R@1 75, sd 20": Beta(True, 0.75, 0.2),
    "R@1 75, sd 30": Beta(True, 0.75, 0.3),
    "R@1 75, sd 20, few queries": Beta(True, 0.75, 0.2, FEW),
    "R@1 75, sd 20, unequal": Beta(True, 0.75, 0.2, UNEQUAL),
    "R@1 75, sd 20, very unequal": Beta(True, 0.75, 0.2, WILD),
    "R@1 60, sd 20, large classes easier": Beta(True, 0.6, 0.2, UNEQUAL, 0.5),
    "R@1 90, sd 10": Beta(True, 0.9, 0.1),
    "R@1 90, sd 10, unequal": Beta(True, 0.9, 0.1, UNEQUAL),
    "R@1 95, sd 8": Beta(True, 0.95, 0.08),
    "R@1 98, sd 4": Beta(True, 0.98, 0.04),
    "mAP 20, sd 15": Beta(False, 0.2, 0.15),
    "mAP 50, sd 20": Beta(False, 0.5, 0.2),
    "mAP 75, sd 20": Beta(False, 0.75, 0.2),
    "mAP 75, sd 20, few queries": Beta(False, 0.75, 0.2, FEW),
    "mAP 75, sd 20, unequal": Beta(False, 0.75, 0.2, UNEQUAL),
    "mAP 60, sd 20, large classes easier": Beta(False, 0.6, 0.2, UNEQUAL, 0.5),
    "mAP 90, sd 10": Beta(False, 0.9, 0.1),
    "mAP 90, sd 10, unequal": Beta(False, 0.9, 0.1, UNEQUAL),
    "mAP 95, sd 8": Beta(False, 0.95, 0.08),
    "embedded R@1, easy": Embedded("recall_at_1", 0.8),
    "embedded R@1, hard": Embedded("recall_at_1", 1.3),
    "embedded R@1, 32 columns": Embedded("recall_at_1", 1.6, 32),
    "embedded mAP": Embedded("map", 0.8),
    "embedded mAP@R": Embedded("map_at_r", 1.3),
}
CHOSEN = "**logit, effective classes (chosen)**"


def jackknifed(sums: Floats, sizes: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the scores (draws,), their standard errors, and the scores without each class."""
    number = sums.shape[1]
    queries = sizes.sum(axis=1)
    total = sums.sum(axis=1)
    without = (total[:, None] - sums) / (queries[:, None] - sizes)
    return total / queries, np.sqrt((number - 1) * without.var(axis=1)), without


def t_of_classes(sums: Floats, sizes: Floats) -> Ends:
    """Return score +- t se, with one degree of freedom less than classes."""
    score, se, _ = jackknifed(sums, sizes)
    half = special.stdtrit(sums.shape[1] - 1, 0.975) * se
    return score - half, score + half


def wilson(sums: Floats, sizes: Floats) -> Ends:
    """Return Wilson's interval of the effective number of queries, with t of effective classes."""
    score, se, _ = jackknifed(sums, sizes)
    effective = sizes.sum(axis=1) ** 2 / (sizes**2).sum(axis=1)
    square = special.stdtrit(np.maximum(effective - 1, 1), 0.975) ** 2
    queries = score * (1 - score) / se**2
    centre = (score + square / (2 * queries)) / (1 + square / queries)
    variance = score * (1 - score) / queries + square / (4 * queries**2)
    half = np.sqrt(square * variance) / (1 + square / queries)
    return centre - half, centre + half


def logit_of_classes(sums: Floats, sizes: Floats) -> Ends:
    """Return the chosen interval, but with one degree of freedom less than classes."""
    score, se, _ = jackknifed(sums, sizes)
    half = special.stdtrit(sums.shape[1] - 1, 0.975) * se / (score * (1 - score))
    centre = special.logit(score)
    return special.expit(centre - half), special.expit(centre + half)


def chosen(sums: Floats, sizes: Floats) -> Ends:
    """Return the interval of ``score``: on the logit scale, with t of effective classes."""
    ends = [logit_interval(*draw) for draw in zip(sums, sizes, strict=True)]
    low, high = np.array(ends).T
    return low, high


def bootstrapped(sums: Floats, sizes: Floats) -> dict[str, Ends]:
    """Return the percentile, the BCa and the studentised interval of classes drawn again."""
    draws, number = sums.shape
    weights = drawn_weights(np.zeros(number), REPETITIONS)
    ends = {name: np.empty((2, draws)) for name in ("percentile", "BCa", "bootstrap t")}
    levels = np.array([0.025, 0.975])
    for start in range(0, draws, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        s = sums[part].T
        m = sizes[part].T
        score, _, without = jackknifed(sums[part], sizes[part])
        queries = weights @ m
        drawn = (weights @ s) / queries
        ordered = np.sort(drawn, axis=0)
        ends["percentile"][:, part] = percentile_interval(ordered, 0.95)
        below = (drawn < score).mean(axis=0) + (drawn == score).mean(axis=0) / 2
        bias = special.ndtri(np.clip(below, 1 / REPETITIONS, 1 - 1 / REPETITIONS))
        away = without.mean(axis=1, keepdims=True) - without
        skewness = (away**3).sum(axis=1) / (6 * (away**2).sum(axis=1) ** 1.5)
        squares = (weights @ s**2) - 2 * drawn * (weights @ (s * m)) + drawn**2 * (weights @ m**2)
        errors = np.sqrt(np.maximum(squares, 0) * number / (number - 1)) / queries
        residuals = s - score * m
        error = np.sqrt((residuals**2).sum(axis=0) * number / (number - 1)) / m.sum(axis=0)
        # a draw of one class many times has no error: as far away as can be
        studentised = np.where(drawn == score, 0, np.sign(drawn - score) * 1e3)
        np.divide(drawn - score, errors, out=studentised, where=errors > 1e-7)
        low, high = np.quantile(studentised, levels, axis=0)
        ends["bootstrap t"][:, part] = score - high * error, score - low * error
        for end, normal in enumerate(special.ndtri(levels)):
            moved = bias + (bias + normal) / (1 - skewness * (bias + normal))
            place = np.nan_to_num(special.ndtr(moved) * REPETITIONS, nan=0).astype(int)
            place = np.clip(place, 0, REPETITIONS - 1)
            ends["BCa"][end, part] = np.take_along_axis(ordered, place[None], axis=0)[0]
    return {name: (low, high) for name, (low, high) in ends.items()}


ONE_EACH: Mapping[str, Callable[[Floats, Floats], Ends]] = {
    "t": t_of_classes,
    "Wilson, effective classes": wilson,
    "logit": logit_of_classes,
    CHOSEN: chosen,
}


def interval_table(
    draws: int,
    classes: tuple[int, ...] = CLASSES,
    worlds: Mapping[str, World] = WORLDS,
    resampled: bool = True,
) -> pd.DataFrame:
    """Return a row per world, number of classes and method.

    coverage  share of draws whose interval holds the truth
    width     median width of intervals, over the true one
    given     share of draws that have an interval
    """
    rows = []
    for world, made in worlds.items():
        for number in classes:
            if isinstance(made, Embedded) and number > MOST_EMBEDDED:
                continue
            rng = np.random.default_rng(derive(0, "classes", world, number))
            sums, sizes = made.draw(draws, number, rng)
            truth = made.truth(number)
            scores, errors, _ = jackknifed(sums, sizes)
            true_width = np.ptp(np.quantile(scores, [0.025, 0.975]))
            some = errors > 1e-12
            sums = sums[some]
            sizes = sizes[some]
            intervals = bootstrapped(sums, sizes) if resampled else {}
            intervals |= {name: method(sums, sizes) for name, method in ONE_EACH.items()}
            for method, (low, high) in intervals.items():
                row = {
                    "world": world,
                    "classes": number,
                    "method": method,
                    "coverage": np.mean((low <= truth) & (truth <= high)),
                    "width": np.median(high - low) / true_width,
                    "given": some.mean(),
                }
                rows.append(row)
    return pd.DataFrame(rows)


def fewest_classes(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the number of classes from which on a method keeps the limits; inf: none of these."""
    fails = (table["coverage"] < COVERAGE) | (table["width"] > WIDTH)
    failing = fails.groupby([table["method"], table["classes"]]).any().unstack()
    fewest = {}
    for method, row in failing.iterrows():
        kept = [number for number in row.index if not row[row.index >= number].any()]
        fewest[method] = min(kept, default=np.inf)
    return pd.Series(fewest)
