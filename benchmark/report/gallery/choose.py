"""Which queries are shown: by a rule that was fixed before anybody had seen them."""

from __future__ import annotations

from collections.abc import Iterable

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


def choose(
    first: np.ndarray, second: np.ndarray, categories: np.ndarray, each: int = EACH
) -> dict[int, str]:
    """Return {row to show: the reason}, in the order of ``REASONS``.

    ``first`` and ``second`` are the AP (Q,) of each query under the two losses; a row without one
    (NaN) is never shown. A query that does not change is neither a gain nor a loss.
    """
    change = second - first
    usable = np.flatnonzero(np.isfinite(change))
    by_change = usable[np.argsort(change[usable], kind="stable")]
    chosen: dict[int, str] = {}

    def add(rows: Iterable[int], reason: str) -> None:
        new = [int(row) for row in rows if int(row) not in chosen]
        chosen.update(dict.fromkeys(new[:each], reason))

    add((row for row in by_change[::-1][:each] if change[row] > 0), GAIN)
    add((row for row in by_change[:each] if change[row] < 0), LOSS)
    order = np.random.default_rng(derive(0, "gallery", len(first))).permutation(len(first))
    add((row for row in order if np.isfinite(change[row])), RANDOM)
    shown = {int(categories[row]) for row in chosen}
    sizes = dict(zip(*np.unique(categories[usable], return_counts=True), strict=True))
    names = [name for name in sizes if name >= 0 and int(name) not in shown]
    names.sort(key=lambda name: (-sizes[name], name))
    add((usable[categories[usable] == name][0] for name in names), CATEGORY)
    return chosen
