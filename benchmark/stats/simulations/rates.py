"""How often a rule is wrong in a world, and how often it sees what is there."""

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
from benchmark.stats.simulations.world import PAIRED, SEVERAL, Tables, World, draw

Moderation = Callable[[ArrayLike, ArrayLike], Moderated]
DRIFT = 3.0  # points: the true difference of the one cell whose power is given
CONFIDENCE = 0.9998  # of Monte Carlo limits


@dataclass(frozen=True)
class Rate:
    """The share of simulated tables or numbers, and its Monte Carlo limits."""

    value: float
    low: float
    high: float


def judge(
    tables: Tables, moderation: Moderation = moderate, looked: int | None = None
) -> TestResult:
    """Return the tests (T, C) of drawn tables, on the first ``looked`` seeds of ours."""
    return compare(evidence(tables, moderation, looked))


def evidence(
    tables: Tables, moderation: Moderation = moderate, looked: int | None = None
) -> Evidence:
    """Return the evidence (T, C) of drawn tables, on the first ``looked`` seeds of ours."""
    world = tables.world
    ours = tables.ours[..., :looked]
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
    if world.reference == SEVERAL:
        theirs = _moderated(tables.reference, world, moderation)
        found = replace(
            found,
            reference_n=world.reference_runs,
            reference_variance=theirs.variance,
            reference_df=theirs.df,
        )
    return found


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


def any_drifted(
    world: World, tables: int, truth: float = 0.0, seed: int = 0, moderation: Moderation = moderate
) -> Rate:
    """Return how many tables have a false "drifted"; ``truth`` 0 to 1 is inside the margin."""
    result = judge(drawn(world, truth, tables, seed), moderation)
    return share(np.asarray((holm(result.p_drift) <= ALPHA).any(axis=-1)))


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
    truths = np.zeros(world.cells)
    truths[-1] = truth
    result = judge(drawn(world, truths, tables, seed), moderation)
    return share(holm(result.p_drift)[:, -1] <= ALPHA)


def drawn(
    world: World, truth: Floats | float, tables: int, seed: int, stream: str = "simulated tables"
) -> Tables:
    """Return tables from a stream of their own: equal arguments give equal tables."""
    role = (stream, repr(world), str(np.max(truth)), str(np.ndim(truth)))
    return draw(world, truth, tables, np.random.default_rng(derive(seed, *role)))


def share(hits: NDArray[np.bool_]) -> Rate:
    """Return the rate of ``hits``; tables, its first axis, are the units of Monte Carlo error."""
    if hits.ndim == 1:
        exact = binomtest(int(hits.sum()), hits.size).proportion_ci(CONFIDENCE)
        return Rate(float(hits.mean()), float(exact.low), float(exact.high))
    interval = t_interval(hits.mean(axis=1), CONFIDENCE)
    return Rate(float(hits.mean()), interval.low, interval.high)


def columns(rates: Mapping[str, Rate]) -> dict[str, float]:
    """Return each rate and its limits by the names of their columns: name, name_low, name_high."""
    return {
        f"{name}{end}": value
        for name, rate in rates.items()
        for end, value in (("", rate.value), ("_low", rate.low), ("_high", rate.high))
    }
