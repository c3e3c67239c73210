"""Planted truths: made-up losses of known order, ranked by the authors' settings and by trials.

A loss scores its best minus ``sensitivity`` times the squared distance of each option from its
optimum, options on [0, 1]; one option (the learning rate) has a sensitivity of its own. The order
is that of the best scores, which stand ``GAP`` points apart. Nothing is trained. Both rule sets end
with the same test: five seeds on the test classes.
"""

import numpy as np
import pandas as pd

from benchmark.core.seeding import derive
from benchmark.stats.intervals import Floats, holm
from benchmark.stats.paired import paired_tests
from benchmark.study.trials import sobol

BUDGETS = (1, 4, 16)
LOSSES = 16
OPTIONS = 4
SEEDS = 5
FOLDS = 2
GAP = 1.0  # points between the best scores of neighbours in the true order
# points: noise of a final run, and of a trial on one fold
SEED_SD = 0.8
FOLD_SD = 1.5
# points lost at distance 1 from the optimum of an option
GENTLE = 4.0
SHARP = 60.0
MIXED = (GENTLE, SHARP)
MOVED = 0.03
# Sd of the distance of a published option from its optimum, and sensitivity to the learning rate:
# every second loss, at random, is of the second kind of a pair. Then the sd of the distance between
# the optima on held-out and on test classes.
WORLDS = {
    "published settings fit": ((0.03, 0.03), MIXED, MOVED),
    "published settings fit every second loss": ((0.03, 0.25), MIXED, MOVED),
    "published settings fit none": ((0.25, 0.25), MIXED, MOVED),
    "the same, no loss is sensitive": ((0.25, 0.25), (GENTLE, GENTLE), MOVED),
    "the same, every loss is sensitive": ((0.25, 0.25), (SHARP, SHARP), MOVED),
    "fit every second, optimum moves": ((0.03, 0.25), MIXED, 0.15),
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
    for name in WORLDS:
        best, finals = _finals(name, draws)
        sign = np.sign(best[:, first] - best[:, second])
        for rules, scores in finals.items():
            means = scores.mean(axis=2)
            wrong = np.sign(means[:, first] - means[:, second]) != sign
            tests = paired_tests(
                scores[:, first].reshape(-1, SEEDS), scores[:, second].reshape(-1, SEEDS)
            )
            p = tests["p"].to_numpy().reshape(draws, -1)
            false_claims = (holm(p) <= 0.05) & wrong
            other_is_best = means.argmax(axis=1) != best.argmax(axis=1)
            shares = {
                "wrong_pairs": wrong.mean(),
                "wrong_best": other_is_best.mean(),
                "false_claims": false_claims.any(axis=1).mean(),
            }
            rows.append({"world": name, "rules": rules, **shares})
    return pd.DataFrame(rows)


def _finals(world: str, draws: int) -> tuple[Floats, dict[str, Floats]]:
    """Return the best scores (W, L), and those of the final runs (W, L, S) by rule set."""
    offsets, rates, moved = WORLDS[world]
    shape = (draws, LOSSES)
    generator = np.random.default_rng(derive(0, "budgets", world))
    best = generator.permuted(np.tile(np.arange(LOSSES) * GAP, (draws, 1)), axis=1)
    half = np.tile(np.arange(LOSSES) % 2, (draws, 1))
    weights = np.full((*shape, OPTIONS), GENTLE)
    weights[..., 0] = np.array(rates)[generator.permuted(half, axis=1)]
    misses = np.array(offsets)[generator.permuted(half, axis=1)]
    optimum = generator.uniform(0.15, 0.85, (*shape, OPTIONS))
    held_out = optimum + moved * generator.standard_normal(optimum.shape)

    def score(settings: Floats, at: Floats) -> Floats:
        distance = (settings - at[:, :, None]) ** 2
        lost = weights[:, :, None] * distance
        return best[..., None] - lost.sum(axis=-1)

    most = max(BUDGETS)
    settings = np.array([sobol(f"planted{loss}", OPTIONS, most) for loss in range(LOSSES)])
    noise = FOLD_SD / np.sqrt(FOLDS) * generator.standard_normal((*shape, most))
    trials = score(settings, held_out) + noise
    on_test = score(settings, optimum)
    published = optimum + misses[..., None] * generator.standard_normal(optimum.shape)
    seeds = SEED_SD * generator.standard_normal((*shape, SEEDS))
    published = np.clip(published, 0, 1)
    finals = {"authors": score(published[:, :, None], optimum) + seeds}
    for budget in BUDGETS:
        chosen = trials[..., :budget].argmax(axis=-1)[..., None]
        finals[f"equal, {budget} trials"] = np.take_along_axis(on_test, chosen, axis=-1) + seeds
    return best, finals
