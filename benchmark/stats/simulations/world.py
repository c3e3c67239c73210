"""Worlds in which a table of numbers is reproduced, with the ways in which they leave theory.

Everything is in points and the margin is one point. Our runs are normal with spread ``sigma``, and
so is the one value that a paper prints, unless the world says otherwise.
"""

from dataclasses import dataclass

import numpy as np

from benchmark.stats.intervals import Floats

SINGLE, SEVERAL, PAIRED = "single", "several", "paired"
EPOCH_SHARE = 0.5  # of the variance of one epoch's score that is not the run's own


@dataclass(frozen=True)
class World:
    """What a table is drawn from.

    cells         numbers in the table, which is the family of the correction
    sisters       cells of one place, which lend each other their spread; 0: the whole table
    seeds         runs of ours for each number
    sigma         spread of our runs
    log_sd        standard deviation of the logarithm of the spread over cells
    outliers      cells of each place whose spread is ``factor`` times that of the others
    heavy_tails   Student's t with 3 degrees of freedom, scaled to the same spread, for every draw
    correlation   share of the variance that all cells of a place have in common at a seed
    step          scores are whole multiples of it (one query of 200: 0.5)
    diverging     probability that a run of ours has no score
    reference     one printed value; mean and spread of ``reference_runs`` printed runs; or frozen
                  runs under our seeds
    ratio         spread of the reference's runs over that of ours
    best_of       runs from which the reference's authors printed the best
    epochs        epochs from which they printed the best; ours is the last
    laboratory    spread of a laboratory's own offset, in the reference alone
    printed       unit of the last printed digit; 0: not rounded
    """

    cells: int = 30
    sisters: int = 0
    seeds: int = 3
    sigma: float = 0.3
    log_sd: float = 0.0
    outliers: int = 0
    factor: float = 1.0
    heavy_tails: bool = False
    correlation: float = 0.0
    step: float = 0.0
    diverging: float = 0.0
    reference: str = SINGLE
    reference_runs: int = 5
    ratio: float = 1.0
    best_of: int = 1
    epochs: int = 1
    laboratory: float = 0.0
    printed: float = 0.0


@dataclass(frozen=True)
class Tables:
    """Drawn tables: scores of ours (T, C, n), NaN where a run diverged, and the reference's.

    ``reference`` (T, C, m) has the runs behind each number; one for a single printed value, those
    under our seeds for frozen runs.
    """

    world: World
    ours: Floats
    reference: Floats


def draw(world: World, truth: Floats | float, tables: int, rng: np.random.Generator) -> Tables:
    """Return ``tables`` tables in which ours exceeds the reference by ``truth`` (C,) on average."""
    spread = world.sigma * _spreads(world, tables, rng)
    ours = np.broadcast_to(truth, (world.cells,))[:, None] + spread[..., None] * _noise(
        world, tables, world.seeds, rng
    )
    theirs = spread[..., None] * world.ratio * _reference_noise(world, tables, rng)
    if world.laboratory:
        theirs = theirs + rng.normal(0.0, world.laboratory, (*spread.shape, 1))
    if world.step:
        level = rng.uniform(0.0, world.step, (*spread.shape, 1))
        ours, theirs = (
            np.round((side + level) / world.step) * world.step for side in (ours, theirs)
        )
    if world.printed and world.reference != PAIRED:
        theirs = np.round(theirs / world.printed) * world.printed
    if world.diverging:
        ours = np.where(rng.random(ours.shape) < world.diverging, np.nan, ours)
    return Tables(world, np.asarray(ours), np.asarray(theirs))


def _spreads(world: World, tables: int, rng: np.random.Generator) -> Floats:
    spread = np.exp(rng.normal(0.0, world.log_sd, (tables, world.cells)))
    places = spread.reshape(tables, -1, world.sisters or world.cells)
    places[..., : world.outliers] *= world.factor
    return spread


def _noise(world: World, tables: int, runs: int, rng: np.random.Generator) -> Floats:
    """Return standard noise (T, C, runs), part of it common to the cells of a place."""
    own = _standard(world, (tables, world.cells, runs), rng)
    if not world.correlation:
        return own
    sisters = world.sisters or world.cells
    common = _standard(world, (tables, world.cells // sisters, runs), rng)
    shared = np.repeat(common, sisters, axis=1)
    mixed = np.sqrt(world.correlation) * shared + np.sqrt(1 - world.correlation) * own
    return np.asarray(mixed, float)


def _reference_noise(world: World, tables: int, rng: np.random.Generator) -> Floats:
    """Return standard noise (T, C, m) of the reference's runs, chosen by its authors' rule."""
    if world.reference == PAIRED:
        return _noise(world, tables, world.seeds, rng)
    if world.reference == SEVERAL:
        return _noise(world, tables, world.reference_runs, rng)
    runs = _noise(world, tables, world.best_of, rng)
    if world.epochs > 1:
        wobble = _standard(world, (*runs.shape, world.epochs), rng)
        runs = (np.sqrt(EPOCH_SHARE) * wobble + np.sqrt(1 - EPOCH_SHARE) * runs[..., None]).max(-1)
    return np.asarray(runs.max(axis=-1, keepdims=True))


def _standard(world: World, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return noise with mean 0 and variance 1."""
    heavy, normal = rng.standard_t, rng.standard_normal
    return np.asarray(heavy(3, shape) / np.sqrt(3) if world.heavy_tails else normal(shape))
