"""Planted truths: made-up losses of known order, ranked by the authors' settings and by trials.

A loss scores its best minus ``sensitivity`` times the squared distance of each option from its
optimum, options on [0, 1]; one option (the learning rate) has a sensitivity of its own. The order
is that of the best scores, which stand ``GAP`` points apart. Nothing is trained. Both rule sets end
with the same test: five seeds on the test classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.core.search import sobol
from benchmark.core.seeding import derive
from benchmark.stats.families import holm
from benchmark.stats.intervals import Floats
from benchmark.stats.paired import paired_tests

BUDGETS = (1, 4, 16)
LOSSES, OPTIONS, SEEDS, FOLDS = 16, 4, 5, 2
GAP = 1.0  # points between the best scores of neighbours in the true order
SEED_SD, FOLD_SD = 0.8, 1.5  # points: noise of a final run, and of a trial on one fold
GENTLE, SHARP = 4.0, 60.0  # points lost at distance 1 from the optimum of an option


@dataclass(frozen=True)
class World:
    """How well published settings fit, and how much the learning rate matters.

    misses   (good, poor): standard deviation of the distance between the published value of an
             option and its optimum; every second loss, at random, is of the second kind
    rates    (gentle, sharp): sensitivity to the learning rate; every second loss likewise
    moved    standard deviation of the distance between the optimum on held-out training classes
             and that on the test classes
    """

    misses: tuple[float, float]
    rates: tuple[float, float] = (GENTLE, SHARP)
    moved: float = 0.03


WORLDS: Mapping[str, World] = {
    "published settings fit": World((0.03, 0.03)),
    "published settings fit every second loss": World((0.03, 0.25)),
    "published settings fit none": World((0.25, 0.25)),
    "the same, no loss is sensitive": World((0.25, 0.25), (GENTLE, GENTLE)),
    "the same, every loss is sensitive": World((0.25, 0.25), (SHARP, SHARP)),
    "fit every second, optimum moves": World((0.03, 0.25), moved=0.15),
}


def rank_worlds(draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Return a row per world and rule set: shares of what it gets wrong, over ``draws`` worlds.

    wrong_pairs   mean share of pairs of losses in the wrong order
    wrong_best    share of worlds in which another loss than the best comes first
    false_claims  share of worlds in which a paired test (Holm over all pairs, 5 %) calls the worse
                  of two losses better
    lost          mean points between the score of a loss and its best
    """
    rows = []
    for name, world in WORLDS.items():
        generator = np.random.default_rng(derive(seed, "budgets", name))
        for rule, (scores, truth) in _finals(world, draws, generator).items():
            rows.append({"world": name, "rules": rule, **_wrong(scores, truth)})
    return pd.DataFrame(rows)


def _finals(
    world: World, draws: int, generator: np.random.Generator
) -> dict[str, tuple[Floats, Floats]]:
    """Return {rule set: (scores (W, L, S) of the final runs, best scores (W, L))}."""
    shape = (draws, LOSSES)
    order = np.arange(LOSSES) * GAP
    best = generator.permuted(np.tile(order, (draws, 1)), axis=1)
    half = np.tile(np.arange(LOSSES) % 2, (draws, 1))
    weights = np.full((*shape, OPTIONS), GENTLE)
    weights[..., 0] = np.array(world.rates)[generator.permuted(half, axis=1)]
    misses = np.array(world.misses)[generator.permuted(half, axis=1)]
    optimum = generator.uniform(0.15, 0.85, (*shape, OPTIONS))
    held_out = optimum + world.moved * generator.standard_normal(optimum.shape)

    def score(settings: Floats, at: Floats) -> Floats:
        distance = (settings - at[:, :, None]) ** 2
        found: Floats = best[..., None] - (weights[:, :, None] * distance).sum(axis=-1)
        return found

    points = np.array([sobol(f"planted{each}", OPTIONS, max(BUDGETS)) for each in range(LOSSES)])
    settings = np.broadcast_to(points, (draws, *points.shape))
    noise = FOLD_SD / np.sqrt(FOLDS) * generator.standard_normal((*shape, max(BUDGETS)))
    trials = score(settings, held_out) + noise
    published = optimum + misses[..., None] * generator.standard_normal(optimum.shape)
    true = {"authors": score(np.clip(published, 0, 1)[:, :, None], optimum)[..., 0]}
    on_test = score(settings, optimum)
    for budget in BUDGETS:
        chosen = trials[..., :budget].argmax(axis=-1)[..., None]
        true[f"equal, {budget} trials"] = np.take_along_axis(on_test, chosen, axis=-1)[..., 0]
    seeds = SEED_SD * generator.standard_normal((*shape, SEEDS))
    return {rule: (each[..., None] + seeds, best) for rule, each in true.items()}


def _wrong(scores: Floats, truth: Floats) -> dict[str, float]:
    first, second = np.triu_indices(LOSSES, 1)
    means = scores.mean(axis=2)
    sign = np.sign(truth[:, first] - truth[:, second])
    found = np.sign(means[:, first] - means[:, second])
    tests = paired_tests(scores[:, first].reshape(-1, SEEDS), scores[:, second].reshape(-1, SEEDS))
    significant = holm(tests["p"].to_numpy().reshape(len(scores), -1)) <= 0.05
    return {
        "wrong_pairs": float((found != sign).mean()),
        "wrong_best": float((means.argmax(axis=1) != truth.argmax(axis=1)).mean()),
        "false_claims": float((significant & (found != sign)).any(axis=1).mean()),
        "lost": float((truth - means).mean()),
    }
