"""Which queries are shown: by a rule that is fixed before anybody has seen them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark.core.seeding import derive

GAIN, LOSS, RANDOM, CATEGORY = "largest gain", "largest loss", "random", "category"
REASONS = {
    GAIN: "the queries that the second loss improves most",
    LOSS: "the queries that it worsens most",
    RANDOM: "drawn at random, the same in every gallery of the dataset",
    CATEGORY: "the first query of each of the largest categories not shown yet",
}
EACH = 3  # queries per reason


@dataclass(frozen=True)
class Chosen:
    """A row of the kept queries and why it is shown."""

    row: int
    reason: str


def choose(
    first: np.ndarray, second: np.ndarray, categories: np.ndarray, each: int = EACH
) -> list[Chosen]:
    """Returns the rows to show, each once, in the order of ``REASONS``.

    ``first`` and ``second`` are the quality (Q,) of each kept query under the two losses; rows without one (NaN) are
    never shown. Queries that do not change count as neither gain nor loss.
    """
    usable = np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    change = second - first
    by_change = usable[np.argsort(change[usable], kind="stable")]
    picked = [Chosen(int(row), GAIN) for row in by_change[::-1][:each] if change[row] > 0]
    picked += [Chosen(int(row), LOSS) for row in by_change[:each] if change[row] < 0]
    drawn = np.random.default_rng(derive(0, "gallery", len(first))).permutation(len(first))
    picked += [Chosen(int(row), RANDOM) for row in _new(drawn, usable, picked)[:each]]
    return picked + [
        Chosen(row, CATEGORY) for row in _by_category(usable, categories, picked)[:each]
    ]


def _new(order: np.ndarray, usable: np.ndarray, picked: list[Chosen]) -> list[int]:
    taken = {item.row for item in picked}
    allowed = set(usable.tolist())
    return [int(row) for row in order if int(row) in allowed and int(row) not in taken]


def _by_category(usable: np.ndarray, categories: np.ndarray, picked: list[Chosen]) -> list[int]:
    shown = {int(categories[item.row]) for item in picked}
    known = categories[usable]
    sizes = {
        int(category): int((known == category).sum())
        for category in np.unique(known)
        if category >= 0
    }
    order = sorted(
        (category for category in sizes if category not in shown),
        key=lambda name: (-sizes[name], name),
    )
    return [int(usable[known == category][0]) for category in order]
