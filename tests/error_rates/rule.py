"""How often the rule of verdicts is wrong: worlds, other rules, and the tables of rates and power.

Everything is in points and the margin is one point. Our runs are normal with spread ``sigma``, and
so is the one value that a paper prints, unless the world says otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats
from scipy.optimize import elementwise

from benchmark.core.seeding import derive
from benchmark.stats.intervals import Floats, mean_sd, t_interval
from benchmark.stats.planning import ALPHA, pocock
from benchmark.stats.reproduction import (
    DRIFTED,
    LABORATORY,
    REPRODUCED,
    STANDING,
    UNDECIDED,
    Evidence,
    compare,
    marks,
)
from benchmark.stats.samples import Moderated, moderate

Moderation = Callable[[Floats, Floats], Moderated]
Edges = Iterable[tuple[float, float]]
SINGLE = "single"
SEVERAL = "several"
PAIRED = "paired"
EPOCH_SHARE = 0.5  # of the variance of one epoch's score that is not the run's own


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


def draw(
    world: World, truth: Floats | float, tables: int, stream: str = "simulated"
) -> tuple[Floats, Floats]:
    """Return ``tables`` tables in which ours exceeds the reference by ``truth`` (C,) on average.

    They are ours (T, C, n), NaN where a run diverged, and the runs (T, C, m) behind theirs.
    """
    role = (f"{stream} tables", repr(world), str(np.max(truth)), str(np.ndim(truth)))
    rng = np.random.default_rng(derive(0, *role))
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
        of_places = standard(tables, world.cells // sisters, runs)
        common = np.repeat(of_places, sisters, axis=1)
        return np.sqrt(world.correlation) * common + np.sqrt(1 - world.correlation) * own

    factors = np.exp(rng.normal(0.0, world.log_sd, (tables, world.cells)))
    factors.reshape(tables, -1, sisters)[..., : world.outliers] *= world.factor
    spread = world.sigma * factors[..., None]
    ours = np.broadcast_to(truth, world.cells)[:, None] + spread * noise(world.seeds)
    runs = {
        SINGLE: world.best_of,
        SEVERAL: world.reference_runs,
        PAIRED: world.seeds,
    }
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
    return ours, theirs


def evidence(
    world: World, ours: Floats, theirs: Floats, moderation: Moderation = moderate
) -> Evidence:
    """Return the evidence (T, C) of drawn tables."""
    shape = ours.shape[:2]
    places = (len(ours), -1, world.sisters or world.cells)

    def of(scores: Floats, name: str, spread: str) -> dict[str, Floats]:
        mean, sd = mean_sd(scores.reshape(-1, scores.shape[2]))
        n = np.isfinite(scores).sum(axis=-1)
        moderated = moderation((sd**2).reshape(places), (n - 1.0).reshape(places))
        return {
            name: mean.reshape(shape),
            f"{name}_n": n,
            f"{spread}variance": moderated.variance.reshape(shape),
            f"{spread}df": moderated.df.reshape(shape),
        }

    if world.reference == PAIRED:
        gaps = ours - theirs[..., : ours.shape[2]]
        found = of(gaps, "ours", "paired_")
        same = (gaps == 0).all(axis=-1)
        return Evidence(**found, reference=0.0, paired_n=found["ours_n"], identical=same)
    found = of(ours, "ours", "")
    found["reference"] = theirs.mean(axis=-1)
    if world.reference == SEVERAL:
        found |= of(theirs, "reference", "reference_")
    return Evidence(**found, slack=world.printed / 2)


def verdicts(
    world: World,
    truth: Floats | float,
    tables: int,
    moderation: Moderation = moderate,
    looks: tuple[int, ...] = (),
    level: float | tuple[float, ...] = ALPHA,
) -> NDArray[np.str_]:
    """Return the verdicts (L, T, C) after each look; one that is reached at a look stays.

    Without ``looks`` there is one, at all seeds; ``level`` is one for all looks or one each.
    """
    ours, theirs = draw(world, truth, tables, "sequential" if looks else "simulated")
    state = np.full((tables, world.cells), UNDECIDED, dtype="<U12")
    after = []
    for look, level_of_look in np.broadcast(np.array(looks or [None]), level):
        seen = evidence(world, ours[..., :look], theirs, moderation)
        now = compare(seen, level_of_look).verdict
        state = np.where(state == UNDECIDED, now, state)
        after.append(state)
    return np.array(after)


def kept_verdicts(world: World, truth: Floats, tables: int) -> dict[str, NDArray[np.str_]]:
    """Return the verdicts (T, C): all, those that stand, those that the laboratory mark leaves."""
    found = evidence(world, *draw(world, truth, tables))
    verdict = compare(found).verdict
    marked = marks(found, published=world.reference != PAIRED)
    marks_of = {
        "all": (),
        "standing": STANDING,
        LABORATORY: (LABORATORY,),
    }
    kept = {}
    for name, asked in marks_of.items():
        same = [marked[mark].verdict == verdict for mark in asked]
        kept[name] = np.where(np.all(same, axis=0), verdict, UNDECIDED)
    return kept


def plain(variance: Floats, df: Floats) -> Moderated:
    """Return each cell's own variance, zero taken as exact: the rule before spreads were shared."""
    own = moderate(variance, df, limit=0.0)
    return own._replace(variance=np.maximum(own.variance, 1e-18))


def pooled(variance: Floats, df: Floats) -> Moderated:
    """Return one variance for all sister cells."""
    total = df.sum(axis=-1, keepdims=True) + np.zeros_like(df)
    mean = (df * variance).sum(axis=-1, keepdims=True) / total
    return Moderated(mean, total, mean, total - df)


def smyth(variance: Floats, df: Floats) -> Moderated:
    """Return variances moderated as by Smyth (2004, section 6.2), for equal degrees of freedom."""
    half = df / 2
    raised = np.maximum(variance, 1e-5 * np.median(variance, axis=-1, keepdims=True))
    e = np.log(raised) - special.digamma(half) + np.log(half)
    centre = e.mean(axis=-1, keepdims=True)
    extra = e.var(axis=-1, ddof=1, keepdims=True) - special.polygamma(1, half[..., :1])
    extra = np.maximum(extra, 1e-6)

    def above(half: Floats, trigamma: Floats) -> Floats:
        return special.polygamma(1, half) - trigamma

    prior_half = elementwise.find_root(above, (1e-3, 1e7), args=(extra,)).x
    prior_variance = np.exp(centre + special.digamma(prior_half) - np.log(prior_half))
    prior_df = 2 * prior_half * np.ones_like(df)
    moderated = (prior_df * prior_variance + df * variance) / (prior_df + df)
    total = np.minimum(prior_df + df, df.sum(axis=-1, keepdims=True))
    return Moderated(moderated, total, prior_variance * np.ones_like(df), prior_df)


CANDIDATES: dict[str, Moderation] = {
    "plain t test": plain,
    "one pooled spread": pooled,
    "Smyth 2004": smyth,
    "at most 5 (the rule before)": partial(moderate, times=np.inf),
    "at most once its own": partial(moderate, times=1.0),
    "**at most twice its own (chosen)**": moderate,
    "at most three times its own": partial(moderate, times=3.0),
}
RULES = {"plain t test": plain, "shared spread": moderate}
SEEDS = (2, 3, 5, 10)
DRIFT = 3.0  # points: the true difference of the one cell whose power is given
EDGES = ((3.0, 0.0), (1.0, 1.0))  # spread and true difference of all cells; the worse one counts
VARIED = 0.4  # log sd of spreads that differ from cell to cell
SIGMAS = (0.1, 0.3)
GOALS = {
    "any_drifted": 0.05,
    "any_drifted_varied": 0.06,
    "reproduced_at_margin": 0.05,
}
POWER_GOALS = {3: 0.80, 5: 0.95}  # by seeds, against one printed value
STRESS = (0.1, 0.3, 1.0, 3.0)  # spreads, each with its own rates
# Drifts that the laboratory mark leaves, where laboratories differ as much as it assumes: tables
# with false ones on the margin; a drift of 3 points seen with 3 seeds, by spread.
METHOD_WORLD = "laboratories differ by 0.5"
METHOD_FALSE = 0.07
METHOD_POWER = {0.1: 0.80, 0.3: 0.55}
# Worlds that leave the assumptions.
WORLDS = {
    "as assumed": World(),
    "heavy tails": World(heavy_tails=True),
    "best of 3 runs": World(best_of=3),
    "best of 20 epochs": World(epochs=20),
    "published spread x 0.3": World(ratio=0.3),
    "published spread x 2": World(ratio=2.0),
    "published spread x 3": World(ratio=3.0),
    "laboratories differ by 0.2": World(laboratory=0.2),
    METHOD_WORLD: World(laboratory=0.5),
    "laboratories differ by 1": World(laboratory=1.0),
    "rounded to 0.1": World(printed=0.1),
    "cells correlated (0.5)": World(correlation=0.5),
    "log sd of spreads 0.8": World(log_sd=0.8),
    "one cell of 10 times the spread": World(outliers=1, factor=10.0),
    "places of 6 cells, log sd 0.4": World(sisters=6, log_sd=0.4),
    "one run of ten diverges": World(diverging=0.1),
    "frozen, steps of 0.5": World(reference=PAIRED, step=0.5),
    "frozen, heavy tails": World(reference=PAIRED, heavy_tails=True),
    "frozen, correlated (0.5)": World(reference=PAIRED, correlation=0.5),
}
SPREADS = (
    World(),
    World(log_sd=VARIED),
    World(log_sd=0.8),
    World(outliers=1, factor=10.0),
)
LOOKS = (3, 5, 10)
PLANS: dict[str, tuple[tuple[int, ...], float | tuple[float, ...]]] = {
    "10 seeds, one look": ((10,), ALPHA),
    "3, 5 and 10, Pocock (chosen)": (LOOKS, pocock(LOOKS)),
    "3, 5 and 10, O'Brien-Fleming": (LOOKS, (0.001, 0.0087, 0.0464)),  # the level rises
    "5 and 10, Pocock (chosen)": ((5, 10), pocock((5, 10))),
    "3, 5 and 10, each at 5%": (LOOKS, ALPHA),
    "3, 4, 5, .. 10, each at 5%": (tuple(range(3, 11)), ALPHA),
}


class Rate(NamedTuple):  # a share of simulated tables or numbers, and its Monte Carlo limits
    value: float
    low: float
    high: float


def share(hits: NDArray[np.bool_], confidence: float = 0.9998) -> Rate:
    """Return the rate of ``hits``; tables, its first axis, are the units of Monte Carlo error."""
    if hits.ndim == 1:
        limits = stats.binomtest(int(hits.sum()), hits.size).proportion_ci(confidence)
    else:
        limits = t_interval(hits.mean(axis=1), confidence)
    return Rate(hits.mean().item(), float(limits.low), float(limits.high))


def table_of(rates: Callable[..., Mapping[str, Rate]], **keys: Iterable[Any]) -> pd.DataFrame:
    """Return a row for each combination of keys: the rates there, each with its limits."""
    rows = [dict(zip(keys, values, strict=True)) for values in product(*keys.values())]
    for row in rows:
        for name, rate in rates(**row).items():
            row[name] = rate.value
            row[f"{name}_low"] = rate.low
            row[f"{name}_high"] = rate.high
    return pd.DataFrame(rows)


def any_drifted(world: World, tables: int, edges: Edges = EDGES, **how: Any) -> Rate:
    """Return how many tables have a false "drifted" at the worst of ``edges``."""
    found = []
    for sigma, truth in edges:
        last = verdicts(replace(world, sigma=sigma), truth, tables, **how)[-1]
        found.append(share((last == DRIFTED).any(axis=-1)))
    return max(found)


def reproduced(world: World, tables: int, truth: float, at: int = -1, **how: Any) -> Rate:
    """Return how many numbers are called reproduced: an error at ``truth`` 1, power at 0."""
    found = verdicts(world, truth, tables, **how)
    return share(found[at] == REPRODUCED)


def at_margin(*worlds: World, **how: Any) -> Rate:
    """Return how many numbers on the edge of the margin are called reproduced, at most."""
    edges = (replace(world, sigma=sigma) for world, sigma in product(worlds, SIGMAS))
    return max(reproduced(edge, truth=1.0, **how) for edge in edges)


def drift_seen(world: World, tables: int, truth: float = DRIFT, at: int = -1, **how: Any) -> Rate:
    """Return how often the only cell with a difference, the table's last, is called drifted."""
    truths = np.r_[np.zeros(world.cells - 1), truth]
    found = verdicts(world, truths, tables, **how)
    return share(found[at, :, -1] == DRIFTED)


def rule_table(tables: int, seeds: tuple[int, ...] = SEEDS) -> pd.DataFrame:
    """Return one row per kind of reference, number of seeds and rule; rates with their limits."""

    def rates(reference: str, seeds: int, rule: str) -> dict[str, Rate]:
        how = {"tables": tables, "moderation": RULES[rule]}
        world = World(reference=reference, seeds=seeds)
        varied = replace(world, log_sd=VARIED)
        return {
            "any_drifted": any_drifted(world, **how),
            "any_drifted_varied": any_drifted(varied, **how),
            "reproduced_at_margin": at_margin(world, varied, **how),
            "drift_seen": drift_seen(world, **how),
            "confirmed": reproduced(world, truth=0.0, **how),
        }

    return table_of(rates, reference=(SINGLE, SEVERAL, PAIRED), seeds=seeds, rule=RULES)


def missed_goals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the shared spread that miss a goal by more than Monte Carlo error."""
    chosen = table[table["rule"] == "shared spread"]
    missed = chosen["drift_seen_high"] < chosen["seeds"].map(POWER_GOALS)
    missed &= chosen["reference"] == SINGLE
    for name, goal in GOALS.items():
        missed |= chosen[f"{name}_low"] > goal
    return chosen[missed]


def frontier_table(tables: int) -> pd.DataFrame:
    """Return a row per rule, number of seeds and world of spreads, against one printed value."""

    def rates(rule: str, seeds: int, spreads: World) -> dict[str, Rate]:
        how = {"world": replace(spreads, seeds=seeds), "moderation": CANDIDATES[rule]}
        return {
            "any_drifted": any_drifted(tables=tables, **how),
            "drift_seen": drift_seen(tables=tables, **how),
        }

    return table_of(rates, rule=CANDIDATES, seeds=(2, 3), spreads=SPREADS)


def stress_table(
    tables: int,
    world: str,
    drift: float = DRIFT,
    seeds: tuple[int, ...] = (3, 5),
    sigmas: Iterable[float] = STRESS,
) -> pd.DataFrame:
    """Return one row per spread and number of seeds: rates of each of ``kept_verdicts``.

    drifted, reproduced   all numbers on the edge of the margin, ours above and below in turn:
                          tables with any "drifted"; numbers called reproduced, of those with ours
                          above: a printed best makes more of these look equal
    drifted_off, seen     ours is ``drift`` below in one number, and equal in the others: tables
                          with a drifted one of the others, and with that one drifted
    """

    def rates(world: str, sigma: float, seeds: int) -> dict[str, Rate]:
        there = replace(WORLDS[world], sigma=sigma, seeds=seeds)
        found = {}
        edges = np.resize([1.0, -1.0], there.cells)
        one = np.r_[np.zeros(there.cells - 1), -drift]
        for name, edge in kept_verdicts(there, edges, tables).items():
            ours_above = edge[:, edges > 0]
            found[f"drifted_{name}"] = share((edge == DRIFTED).any(axis=-1))
            found[f"reproduced_{name}"] = share(ours_above == REPRODUCED)
        for name, off in kept_verdicts(there, one, tables).items():
            is_drifted = off == DRIFTED
            found[f"drifted_off_{name}"] = share(is_drifted[:, :-1].any(axis=-1))
            found[f"seen_{name}"] = share(is_drifted[:, -1])
        return found

    return table_of(rates, world=(world,), sigma=sigmas, seeds=seeds)


def missed_by_laboratories(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``METHOD_WORLD`` that miss a goal by more than Monte Carlo error."""
    rows = table[table["world"] == METHOD_WORLD]
    wanted = rows["sigma"].map(METHOD_POWER).where(rows["seeds"] == 3)
    too_often = rows["drifted_laboratory_low"] > METHOD_FALSE
    return rows[too_often | (rows["seen_laboratory_high"] < wanted)]


def sequence_table(tables: int) -> pd.DataFrame:
    """Return one row per kind of reference and plan of looks, each with its level or levels.

    Errors are at some look; a drift of 3 points, and equal numbers, at the first and at some.
    """

    def rates(reference: str, looks: str) -> dict[str, Rate]:
        planned, level = PLANS[looks]
        world = World(reference=reference, seeds=planned[-1])
        how = {"tables": tables, "looks": planned, "level": level}
        return {
            "any_drifted": any_drifted(world, **how),
            "reproduced_at_margin": reproduced(world, truth=1.0, **how),
            "drift_seen_first": drift_seen(world, at=0, **how),
            "drift_seen_all": drift_seen(world, **how),
            "confirmed_first": reproduced(world, truth=0.0, at=0, **how),
            "confirmed_all": reproduced(world, truth=0.0, **how),
        }

    return table_of(rates, reference=(SINGLE, PAIRED), looks=PLANS)
