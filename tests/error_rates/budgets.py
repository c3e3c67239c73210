"""Planted truths: made-up losses of known order, ranked by the authors' settings and by trials.

A loss scores its best minus ``sensitivity`` times the squared distance of each option from its
optimum, options on [0, 1]; one option (the learning rate) has a sensitivity of its own. The order
is that of the best scores, which stand ``GAP`` points apart. Nothing is trained. Both rule sets end
with the same test: five seeds on the test classes.
"""

from collections.abc import Iterator
from typing import NamedTuple

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


class World(NamedTuple):
    """How well published settings fit, and how much the learning rate matters.

    Every second loss, at random, is of the second kind of a pair.
    """

    misses: tuple[float, float]  # sd of the distance of a published option from its optimum
    rates: tuple[float, float] = (GENTLE, SHARP)  # sensitivity to the learning rate
    moved: float = 0.03  # sd of the distance between the optima on held-out and on test classes


WORLDS = {
    "published settings fit": World((0.03, 0.03)),
    "published settings fit every second loss": World((0.03, 0.25)),
    "published settings fit none": World((0.25, 0.25)),
    "the same, no loss is sensitive": World((0.25, 0.25), (GENTLE, GENTLE)),
    "the same, every loss is sensitive": World((0.25, 0.25), (SHARP, SHARP)),
    "fit every second, optimum moves": World((0.03, 0.25), moved=0.15),
}


def rank_worlds(draws: int) -> pd.DataFrame:
    """Return a row per world and rule set: shares of what it gets wrong, over ``draws`` worlds.

    wrong_pairs   mean share of pairs of losses in the wrong order
    wrong_best    share of worlds in which another loss than the best comes first
    false_claims  share of worlds in which a paired test (Holm over all pairs, 5 %) calls the worse
                  of two losses better
    """
    first, second = np.triu_indices(LOSSES, 1)
    rows = []
    for name, world in WORLDS.items():
        for rule, scores, truth in _finals(
            world, draws, np.random.default_rng(derive(0, "budgets", name))
        ):
            means = scores.mean(axis=2)
            sign = np.sign(truth[:, first] - truth[:, second])
            wrong = np.sign(means[:, first] - means[:, second]) != sign
            pairs = (scores[:, each].reshape(-1, SEEDS) for each in (first, second))
            significant = holm(paired_tests(*pairs)["p"].to_numpy().reshape(draws, -1)) <= 0.05
            shares = {
                "wrong_pairs": wrong.mean(),
                "wrong_best": (means.argmax(axis=1) != truth.argmax(axis=1)).mean(),
                "false_claims": (significant & wrong).any(axis=1).mean(),
            }
            rows.append({"world": name, "rules": rule, **shares})
    return pd.DataFrame(rows)


def _finals(
    world: World, draws: int, generator: np.random.Generator
) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield rule set, scores (W, L, S) of the final runs and best scores (W, L)."""
    shape = (draws, LOSSES)
    best = generator.permuted(np.tile(np.arange(LOSSES) * GAP, (draws, 1)), axis=1)
    half = np.tile(np.arange(LOSSES) % 2, (draws, 1))
    weights = np.full((*shape, OPTIONS), GENTLE)
    weights[..., 0] = np.array(world.rates)[generator.permuted(half, axis=1)]
    misses = np.array(world.misses)[generator.permuted(half, axis=1)]
    optimum = generator.uniform(0.15, 0.85, (*shape, OPTIONS))
    held_out = optimum + world.moved * generator.standard_normal(optimum.shape)

    def score(settings: Floats, at: Floats) -> Floats:
        distance = (settings - at[:, :, None]) ** 2
        return best[..., None] - (weights[:, :, None] * distance).sum(axis=-1)

    settings = np.array([sobol(f"planted{each}", OPTIONS, max(BUDGETS)) for each in range(LOSSES)])
    noise = FOLD_SD / np.sqrt(FOLDS) * generator.standard_normal((*shape, max(BUDGETS)))
    trials, on_test = score(settings, held_out) + noise, score(settings, optimum)
    published = optimum + misses[..., None] * generator.standard_normal(optimum.shape)
    seeds = SEED_SD * generator.standard_normal((*shape, SEEDS))
    yield "authors", score(np.clip(published, 0, 1)[:, :, None], optimum) + seeds, best
    for budget in BUDGETS:
        chosen = trials[..., :budget].argmax(axis=-1)[..., None]
        yield f"equal, {budget} trials", np.take_along_axis(on_test, chosen, axis=-1) + seeds, best
