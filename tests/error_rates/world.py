"""Worlds in which a table of numbers is reproduced, and how often the rule is wrong there.

Everything is in points and the margin is one point. Our runs are normal with spread ``sigma``, and
so is the one value that a paper prints, unless the world says otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from benchmark.core.seeding import derive
from benchmark.stats.families import holm
from benchmark.stats.intervals import Floats, t_interval
from benchmark.stats.moderation import Moderated, moderate
from benchmark.stats.reproduction import ALPHA, Evidence, TestResult, compare

Moderation = Callable[[ArrayLike, ArrayLike], Moderated]
SINGLE, SEVERAL, PAIRED = "single", "several", "paired"
EPOCH_SHARE = 0.5  # of the variance of one epoch's score that is not the run's own
DRIFT = 3.0  # points: the true difference of the one cell whose power is given
CONFIDENCE = 0.9998  # of Monte Carlo limits


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
    best_of: int = 1  # runs from which the reference's authors printed the best
    epochs: int = 1  # epochs from which they printed the best; ours is the last
    laboratory: float = 0.0  # spread of a laboratory's own offset, in the reference alone
    printed: float = 0.0  # unit of the last printed digit; 0: not rounded


@dataclass(frozen=True)
class Tables:
    """Scores of ours (T, C, n), NaN where a run diverged, and the runs (T, C, m) behind theirs."""

    world: World
    ours: Floats
    reference: Floats


def draw(world: World, truth: Floats | float, tables: int, rng: np.random.Generator) -> Tables:
    """Return ``tables`` tables in which ours exceeds the reference by ``truth`` (C,) on average."""
    factors = np.exp(rng.normal(0.0, world.log_sd, (tables, world.cells)))
    factors.reshape(tables, -1, world.sisters or world.cells)[..., : world.outliers] *= world.factor
    spread = world.sigma * factors[..., None]
    ours = np.broadcast_to(truth, (world.cells,))[:, None] + spread * _noise(
        world, tables, world.seeds, rng
    )
    theirs = spread * world.ratio * _reference_noise(world, tables, rng)
    if world.laboratory:
        theirs = theirs + rng.normal(0.0, world.laboratory, spread.shape)
    if world.step:
        level = rng.uniform(0.0, world.step, spread.shape)
        ours, theirs = (
            np.round((side + level) / world.step) * world.step for side in (ours, theirs)
        )
    if world.printed and world.reference != PAIRED:
        theirs = np.round(theirs / world.printed) * world.printed
    if world.diverging:
        ours = np.where(rng.random(ours.shape) < world.diverging, np.nan, ours)
    return Tables(world, ours, theirs)


def _noise(world: World, tables: int, runs: int, rng: np.random.Generator) -> Floats:
    """Return standard noise (T, C, runs), part of it common to the cells of a place."""
    own = _standard(world, (tables, world.cells, runs), rng)
    if not world.correlation:
        return own
    sisters = world.sisters or world.cells
    common = _standard(world, (tables, world.cells // sisters, runs), rng)
    shared = np.repeat(common, sisters, axis=1)
    return np.sqrt(world.correlation) * shared + np.sqrt(1 - world.correlation) * own


def _reference_noise(world: World, tables: int, rng: np.random.Generator) -> Floats:
    """Return standard noise (T, C, m) of the reference's runs, chosen by its authors' rule."""
    if world.reference != SINGLE:
        runs = world.seeds if world.reference == PAIRED else world.reference_runs
        return _noise(world, tables, runs, rng)
    found = _noise(world, tables, world.best_of, rng)
    if world.epochs > 1:
        wobble = _standard(world, (*found.shape, world.epochs), rng)
        own = np.sqrt(1 - EPOCH_SHARE) * found[..., None]
        found = (np.sqrt(EPOCH_SHARE) * wobble + own).max(-1)
    return found.max(axis=-1, keepdims=True)


def _standard(world: World, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if world.heavy_tails:
        return rng.standard_t(3, shape) / np.sqrt(3)
    return rng.standard_normal(shape)


def judge(
    tables: Tables, moderation: Moderation = moderate, looked: int | None = None
) -> TestResult:
    """Return the tests (T, C) of drawn tables, on the first ``looked`` seeds of ours."""
    return compare(evidence(tables, moderation, looked))


def evidence(
    tables: Tables, moderation: Moderation = moderate, looked: int | None = None
) -> Evidence:
    """Return the evidence (T, C) of drawn tables, on the first ``looked`` seeds of ours."""
    world, ours = tables.world, tables.ours[..., :looked]
    n = np.isfinite(ours).sum(axis=-1).astype(float)
    if world.reference == PAIRED:
        differences = ours - tables.reference[..., :looked]
        spread = _moderated(differences, world, moderation)
        return Evidence(
            ours=_mean(differences),
            ours_n=n,
            reference=0.0,
            paired_n=n,
            paired_variance=spread.variance,
            paired_df=spread.df,
            identical=(differences == 0).all(axis=-1),
        )
    mine = _moderated(ours, world, moderation)
    found = Evidence(
        ours=_mean(ours),
        ours_n=n,
        reference=tables.reference.mean(axis=-1),
        variance=mine.variance,
        df=mine.df,
        slack=world.printed / 2,
    )
    if world.reference == SINGLE:
        return found
    theirs = _moderated(tables.reference, world, moderation)
    return replace(
        found,
        reference_n=world.reference_runs,
        reference_variance=theirs.variance,
        reference_df=theirs.df,
    )


def _moderated(scores: Floats, world: World, moderation: Moderation) -> Moderated:
    """Return the moderated variances (T, C) of scores (T, C, n) over the cells of each place."""
    n = np.isfinite(scores).sum(axis=-1)
    deviations = np.nan_to_num(scores - _mean(scores)[..., None])
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(n > 1, (deviations**2).sum(axis=-1) / (n - 1), np.nan)
    variance = np.where(variance < 1e-20, 0.0, variance)  # equal scores differ by rounding only
    places = (len(variance), -1, world.sisters or world.cells)
    found = moderation(variance.reshape(places), (n - 1.0).reshape(places))
    return Moderated(**{name: each.reshape(n.shape) for name, each in vars(found).items()})


def _mean(scores: Floats) -> Floats:
    count = np.isfinite(scores).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, np.nansum(scores, axis=-1) / count, np.nan)


@dataclass(frozen=True)
class Rate:
    """The share of simulated tables or numbers, and its Monte Carlo limits."""

    value: float
    low: float
    high: float


def share(hits: NDArray[np.bool_]) -> Rate:
    """Return the rate of ``hits``; tables, its first axis, are the units of Monte Carlo error."""
    if hits.ndim == 1:
        limits = binomtest(int(hits.sum()), hits.size).proportion_ci(CONFIDENCE)
    else:
        limits = t_interval(hits.mean(axis=1), CONFIDENCE)
    return Rate(float(hits.mean()), float(limits.low), float(limits.high))


def drawn(
    world: World, truth: Floats | float, tables: int, seed: int, stream: str = "simulated tables"
) -> Tables:
    """Return tables from a stream of their own: equal arguments give equal tables."""
    role = (stream, repr(world), str(np.max(truth)), str(np.ndim(truth)))
    return draw(world, truth, tables, np.random.default_rng(derive(seed, *role)))


def any_drifted(
    world: World, tables: int, truth: float = 0.0, seed: int = 0, moderation: Moderation = moderate
) -> Rate:
    """Return how many tables have a false "drifted"; ``truth`` 0 to 1 is inside the margin."""
    result = judge(drawn(world, truth, tables, seed), moderation)
    return share((holm(result.p_drift) <= ALPHA).any(axis=-1))


def worst_any_drifted(
    world: World, tables: int, seed: int = 0, moderation: Moderation = moderate
) -> Rate:
    """Return the higher rate of tables with a false drift, far from the margin and at its edge."""
    far = any_drifted(replace(world, sigma=3.0), tables, 0.0, seed, moderation)
    edge = any_drifted(replace(world, sigma=1.0), tables, 1.0, seed, moderation)
    return max(far, edge, key=lambda rate: rate.value)


def reproduced(
    world: World, tables: int, truth: float, seed: int = 0, moderation: Moderation = moderate
) -> Rate:
    """Return how many numbers are called reproduced: an error at ``truth`` 1, power at 0."""
    result = judge(drawn(world, truth, tables, seed), moderation)
    return share(np.asarray(result.p_equivalence <= ALPHA))


def drift_seen(
    world: World,
    tables: int,
    truth: float = DRIFT,
    seed: int = 0,
    moderation: Moderation = moderate,
) -> Rate:
    """Return how often the only cell with a difference, the table's last, is called drifted."""
    result = judge(drawn(world, only_last(world, truth), tables, seed), moderation)
    return share(holm(result.p_drift)[:, -1] <= ALPHA)


def only_last(world: World, truth: float) -> Floats:
    """Return the true differences (C,) of a table in which the last cell alone has one."""
    return np.r_[np.zeros(world.cells - 1), truth]


def columns(rates: Mapping[str, Rate]) -> dict[str, float]:
    """Return each rate and its limits by the names of their columns: name, name_low, name_high."""
    found = {}
    for name, rate in rates.items():
        found |= {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}
    return found
