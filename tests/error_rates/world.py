"""Worlds in which a table of numbers is reproduced, and how often the rule is wrong there.

Everything is in points and the margin is one point. Our runs are normal with spread ``sigma``, and
so is the one value that a paper prints, unless the world says otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from benchmark.core.seeding import derive
from benchmark.stats.intervals import Floats, mean_sd, t_interval
from benchmark.stats.looks import Levels
from benchmark.stats.moderation import Moderated, moderate
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    REPRODUCED,
    UNDECIDED,
    Evidence,
    compare,
)

Moderation = Callable[[ArrayLike, ArrayLike], Moderated]
SINGLE, SEVERAL, PAIRED = "single", "several", "paired"
EPOCH_SHARE = 0.5  # of the variance of one epoch's score that is not the run's own
DRIFT = 3.0  # points: the true difference of the one cell whose power is given
EDGES = ((3.0, 0.0), (1.0, 1.0))  # spread and true difference where false drifts are most


@dataclass(frozen=True)
class World:
    """What a table is drawn from."""

    cells: int = 30  # numbers in the table: the family of the correction
    sisters: int = 0  # cells of one place, which lend each other their spread; 0: the whole table
    seeds: int = 3  # runs of ours for each number
    sigma: float = 0.3  # spread of our runs
    log_sd: float = 0.0  # of the spread over cells
    outliers: int = 0  # cells of each place whose spread is ``factor`` times that of the others
    factor: float = 1.0
    heavy_tails: bool = False  # t with 3 degrees of freedom, scaled to the same spread
    correlation: float = 0.0  # share of the variance common to all cells of a place at a seed
    step: float = 0.0  # scores are whole multiples of it (one query of 200: 0.5)
    diverging: float = 0.0  # probability that a run of ours has no score
    reference: str = SINGLE  # one value; mean and spread of several; frozen runs under our seeds
    reference_runs: int = 5
    ratio: float = 1.0  # spread of the reference's runs over that of ours
    best_of: int = 1  # runs from which the authors of one value printed the best
    epochs: int = 1  # epochs from which they printed the best; ours is the last
    laboratory: float = 0.0  # spread of a laboratory's own offset, in the reference alone
    printed: float = 0.0  # unit of the last printed digit; 0: not rounded


class Tables(NamedTuple):
    """Scores of ours (T, C, n), NaN where a run diverged, and the runs (T, C, m) behind theirs."""

    ours: Floats
    reference: Floats


def draw(world: World, truth: Floats | float, tables: int, rng: np.random.Generator) -> Tables:
    """Return ``tables`` tables in which ours exceeds the reference by ``truth`` (C,) on average."""
    sisters = world.sisters or world.cells

    def standard(*shape: int) -> Floats:
        if world.heavy_tails:
            return rng.standard_t(3, shape) / np.sqrt(3)
        return rng.standard_normal(shape)

    def noise(runs: int) -> Floats:
        """Return standard noise (T, C, runs), part of it common to the cells of a place."""
        own = standard(tables, world.cells, runs)
        if not world.correlation:
            return own
        common = np.repeat(standard(tables, world.cells // sisters, runs), sisters, axis=1)
        return np.sqrt(world.correlation) * common + np.sqrt(1 - world.correlation) * own

    factors = np.exp(rng.normal(0.0, world.log_sd, (tables, world.cells)))
    factors.reshape(tables, -1, sisters)[..., : world.outliers] *= world.factor
    spread = world.sigma * factors[..., None]
    mean = np.broadcast_to(truth, (world.cells,))[:, None]
    ours = mean + spread * noise(world.seeds)
    runs = {SINGLE: world.best_of, SEVERAL: world.reference_runs, PAIRED: world.seeds}
    theirs = noise(runs[world.reference])
    if world.epochs > 1:
        wobble = standard(*theirs.shape, world.epochs)
        own = np.sqrt(1 - EPOCH_SHARE) * theirs[..., None]
        theirs = (np.sqrt(EPOCH_SHARE) * wobble + own).max(axis=-1)
    if world.reference == SINGLE:
        theirs = theirs.max(axis=-1, keepdims=True)
    theirs = spread * world.ratio * theirs
    if world.laboratory:
        theirs = theirs + rng.normal(0.0, world.laboratory, spread.shape)
    if world.step:
        level = rng.uniform(0.0, world.step, spread.shape)
        ours = np.round((ours + level) / world.step) * world.step
        theirs = np.round((theirs + level) / world.step) * world.step
    if world.printed:
        theirs = np.round(theirs / world.printed) * world.printed
    if world.diverging:
        ours = np.where(rng.random(ours.shape) < world.diverging, np.nan, ours)
    return Tables(ours, theirs)


def drawn(
    world: World, truth: Floats | float, tables: int, seed: int = 0, stream: str = "simulated"
) -> Tables:
    """Return tables from a stream of their own: equal arguments give equal tables."""
    role = (f"{stream} tables", repr(world), str(np.max(truth)), str(np.ndim(truth)))
    return draw(world, truth, tables, np.random.default_rng(derive(seed, *role)))


def evidence(
    world: World, tables: Tables, moderation: Moderation = moderate, looked: int | None = None
) -> Evidence:
    """Return the evidence (T, C) of drawn tables, on the first ``looked`` seeds of ours."""
    ours, theirs = tables.ours[..., :looked], tables.reference
    shape, places = ours.shape[:2], (len(ours), -1, world.sisters or world.cells)

    def of(scores: Floats, name: str, spread: str) -> dict[str, Floats]:
        mean, sd = (each.reshape(shape) for each in mean_sd(scores.reshape(-1, scores.shape[2])))
        n = np.isfinite(scores).sum(axis=-1)
        moderated = moderation((sd**2).reshape(places), (n - 1.0).reshape(places))
        variance, df = (each.reshape(shape) for each in (moderated.variance, moderated.df))
        return {name: mean, f"{name}_n": n, f"{spread}variance": variance, f"{spread}df": df}

    if world.reference == PAIRED:
        gaps = ours - theirs[..., :looked]
        found = of(gaps, "ours", "paired_")
        same = (gaps == 0).all(axis=-1)
        return Evidence(**found, reference=0.0, paired_n=found["ours_n"], identical=same)
    found = of(ours, "ours", "") | {"reference": theirs.mean(axis=-1)}
    if world.reference == SEVERAL:
        found |= of(theirs, "reference", "reference_")
    return Evidence(**found, slack=world.printed / 2)


def verdicts(
    world: World,
    truth: Floats | float,
    tables: int,
    moderation: Moderation = moderate,
    looks: tuple[int, ...] = (),
    level: float | Levels = ALPHA,
) -> NDArray[np.str_]:
    """Return the verdicts (L, T, C) after each look; one that is reached at a look stays.

    Without ``looks`` there is one, at all seeds; ``level`` is one for all looks or one each.
    """
    scores = drawn(world, truth, tables, stream="sequential" if looks else "simulated")
    state, after = np.full((tables, world.cells), UNDECIDED, dtype="<U12"), []
    for look, each in np.broadcast(np.array(looks or [None]), level):
        now = compare(evidence(world, scores, moderation, look), each).verdict
        state = np.where(state == UNDECIDED, now, state)
        after.append(state)
    return np.array(after)


class Rate(NamedTuple):
    """The share of simulated tables or numbers, and its Monte Carlo limits."""

    value: float
    low: float
    high: float


def share(hits: NDArray[np.bool_], confidence: float = 0.9998) -> Rate:
    """Return the rate of ``hits``; tables, its first axis, are the units of Monte Carlo error."""
    if hits.ndim == 1:
        limits = binomtest(int(hits.sum()), hits.size).proportion_ci(confidence)
    else:
        limits = t_interval(hits.mean(axis=1), confidence)
    return Rate(float(hits.mean()), float(limits.low), float(limits.high))


def columns(rates: Mapping[str, Rate]) -> dict[str, float]:
    """Return each rate and its limits by the names of their columns: name, name_low, name_high."""
    ends = {"": 0, "_low": 1, "_high": 2}
    return {f"{name}{end}": rate[at] for name, rate in rates.items() for end, at in ends.items()}


def worst(rates: Iterable[Rate]) -> Rate:
    """Return the highest of the rates."""
    return max(rates, key=lambda rate: rate.value)


def any_drifted(world: World, tables: int, **how: Any) -> Rate:
    """Return how many tables have a false "drifted" at the worse of ``EDGES``."""
    edges = [(replace(world, sigma=sigma), truth) for sigma, truth in EDGES]
    found = (verdicts(each, truth, tables, **how)[-1] == DRIFTED for each, truth in edges)
    return worst(share(hits.any(axis=-1)) for hits in found)


def reproduced(world: World, tables: int, truth: float, at: int = -1, **how: Any) -> Rate:
    """Return how many numbers are called reproduced: an error at ``truth`` 1, power at 0."""
    return share(verdicts(world, truth, tables, **how)[at] == REPRODUCED)


def drift_seen(world: World, tables: int, truth: float = DRIFT, at: int = -1, **how: Any) -> Rate:
    """Return how often the only cell with a difference, the table's last, is called drifted."""
    truths = np.r_[np.zeros(world.cells - 1), truth]
    return share(verdicts(world, truths, tables, **how)[at, :, -1] == DRIFTED)
