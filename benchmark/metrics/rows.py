"""Ranks of chosen items in rows of scores: by counting where they are few, else by sorting a row.

Both ways give the range of ranks that items of equal score share; ties are then settled by index.
"""

from itertools import pairwise

import numpy as np

# Scores handled by one call into numpy: enough that threads seldom meet at the interpreter's lock,
# few enough that they, their masks and sorted copies stay in the second-level cache.
SCORES_AT_ONCE = 2**18
# Two passes over a row per item cost less than sorting it up to here (measured at 20,000 scores a
# row).
COUNTED_ITEMS = 6
# Where scores tie, up to so many items are counted one by one before a stable sort of the row costs
# less.
TIED_ITEMS = 32
# Masks are summed as words of eight bytes; a byte of the sum holds at most 255, so that many words
# at most.
_WORDS = 128


def rank_rows(scores: np.ndarray, counts: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the ranks (T,) of ``items`` (T,), ascending in each row; 1 is best, ties by index.

    ``scores`` float32 (R, N); ``counts`` (R,) says how many of ``items`` belong to each row, sum T.
    """
    bounds = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(scores)), counts)
    values = scores[rows, items]
    above, at_least = np.empty((2, len(items)), dtype=np.int64)
    mask = _Mask(scores.shape[1])
    together = max(1, SCORES_AT_ONCE // max(1, scores.shape[1]))
    for low, high in pairwise([*range(0, len(scores), together), len(scores)]):
        part = slice(bounds[low], bounds[high])
        if part.start == part.stop:
            continue
        count = mask.count if counts[low:high].max() <= COUNTED_ITEMS else _count_by_sorting
        above[part], at_least[part] = count(
            scores[low:high], bounds[low : high + 1] - bounds[low], values[part]
        )
    order = np.lexsort((above, rows))
    ranks = above[order] + 1
    for row in np.unique(rows[ranks != at_least[order]]):
        part = slice(bounds[row], bounds[row + 1])
        ranks[part] = _ranks_with_ties(scores[row], items[part])
    return ranks


def _count_by_sorting(
    scores: np.ndarray, bounds: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many scores of its row are above, and at least, each of ``values``, by sorting."""
    ascending = np.sort(scores, axis=1)
    above, at_least = np.empty((2, len(values)), dtype=np.int64)
    for row, (low, high) in zip(ascending, pairwise(bounds.tolist()), strict=True):
        above[low:high] = len(row) - np.searchsorted(row, values[low:high], side="right")
        at_least[low:high] = len(row) - np.searchsorted(row, values[low:high], side="left")
    return above, at_least


def _ranks_with_ties(row: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the ascending ranks of ``items`` in one row; equal scores rank by index."""
    if len(items) <= TIED_ITEMS:
        ahead = [
            np.count_nonzero(row > row[item]) + np.count_nonzero(row[:item] == row[item])
            for item in items
        ]
        return np.sort(np.array(ahead, dtype=np.int64)) + 1
    places = np.empty(len(row), dtype=np.int64)
    places[np.argsort(-row, kind="stable")] = np.arange(1, len(row) + 1)
    return np.sort(places[items])


class _Mask:
    """Compares rows with values and counts, faster than ``count_nonzero``, in memory it keeps."""

    def __init__(self, items: int):
        self._items = items
        self._padded = -(-items // (8 * _WORDS)) * 8 * _WORDS
        self._store = np.zeros((0, self._padded), dtype=bool)

    def count(
        self, scores: np.ndarray, bounds: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many scores of its row are above, and at least, each of ``values``; the values
        of row i are ``bounds[i]`` to ``bounds[i + 1]``."""
        counts = np.diff(bounds)
        taken = np.arange(counts.max()) < counts[:, None]
        limits = np.full((*taken.shape, 1), np.inf, dtype=np.float32)
        limits[taken, 0] = values
        above, at_least = (
            self._true(compare, scores[:, None, :], limits)[taken]
            for compare in (np.greater, np.greater_equal)
        )
        return above, at_least

    def _true(self, compare: np.ufunc, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the number of true ``compare(left, right)``: (R, P) over the N of (R, P, N)."""
        shape = (left.shape[0], right.shape[1])
        needed = shape[0] * shape[1]
        if needed > len(self._store):
            self._store = np.zeros((needed, self._padded), dtype=bool)
        mask = self._store[:needed].reshape(*shape, self._padded)
        compare(left, right, out=mask[..., : self._items])
        words = mask.view(np.uint64).reshape(needed, -1, _WORDS).sum(axis=2)
        return words.view(np.uint8).sum(axis=1, dtype=np.int64).reshape(shape)
