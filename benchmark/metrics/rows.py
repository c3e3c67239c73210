"""Ranks of chosen items within rows of scores: by counting where they are few, else by one sort per row.

Both ways give the range of ranks that items of equal score share; ties are then settled by index.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

# Rows handled by one call into numpy: enough that threads seldom meet at the interpreter's lock, few enough
# that sorted copies and masks stay in the cache.
ROWS_AT_ONCE = 8
# Two passes over a row per item cost less than sorting it up to here (measured at 20,000 scores a row).
COUNTED_ITEMS = 6
# Where scores tie, up to so many items are counted one by one before a stable sort of the row costs less.
TIED_ITEMS = 32
# Masks are summed as words of eight bytes; a byte of the sum holds at most 255, so that many words at most.
_WORDS = 128


def rank_rows(scores: np.ndarray, counts: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Returns the ranks (T,) of ``items`` (T,), row after row, ascending within each row; 1 is the highest
    score, equal scores rank in the order of their index.

    ``scores`` float32 (R, N); ``counts`` (R,) says how many of ``items`` belong to each row, sum T.
    """
    bounds = np.concatenate([[0], np.cumsum(counts)])
    edges = [*range(0, len(scores), ROWS_AT_ONCE), len(scores)]
    mask = _Mask(scores.shape[1])
    ranked = [
        _rank_group(scores[low:high], counts[low:high], items[bounds[low] : bounds[high]], mask)
        for low, high in pairwise(edges)
    ]
    return np.concatenate(ranked) if ranked else np.empty(0, dtype=np.int64)


def _rank_group(scores: np.ndarray, counts: np.ndarray, items: np.ndarray, mask: _Mask) -> np.ndarray:
    bounds = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(scores)), counts)
    values = scores[rows, items]
    if counts.max() <= COUNTED_ITEMS:
        above, at_least = _by_counting(scores, rows, np.arange(len(rows)) - bounds[rows], values, mask)
    else:
        above, at_least = _by_sorting(scores, bounds, values)
    ranks = above + 1
    for row in np.unique(rows[ranks != at_least]):
        part = slice(bounds[row], bounds[row + 1])
        ranks[part] = _ranks_with_ties(scores[row], items[part])
    return ranks


def _by_counting(scores, rows, columns, values, mask) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many scores of its row are above, and at least, each of ``values`` (T,), best value of
    each row first."""
    limits = np.full((len(scores), columns.max(initial=0) + 1, 1), np.inf, dtype=np.float32)
    limits[rows, columns, 0] = values
    above = mask.count(np.greater, scores[:, None, :], limits)[rows, columns]
    at_least = mask.count(np.greater_equal, scores[:, None, :], limits)[rows, columns]
    order = np.lexsort((above, rows))
    return above[order], at_least[order]


def _by_sorting(scores, bounds, values) -> tuple[np.ndarray, np.ndarray]:
    """Returns the same as ``_by_counting``, in one sort per row."""
    ascending = np.sort(scores, axis=1)
    above, at_least = np.empty((2, len(values)), dtype=np.int64)
    for row, (low, high) in zip(ascending, pairwise(bounds.tolist()), strict=True):
        own = np.sort(values[low:high])
        above[low:high] = len(row) - np.searchsorted(row, own, side="right")[::-1]
        at_least[low:high] = len(row) - np.searchsorted(row, own, side="left")[::-1]
    return above, at_least


def _ranks_with_ties(row: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Returns the ascending ranks of ``items`` in one row, equal scores in the order of their index."""
    if len(items) <= TIED_ITEMS:
        ahead = [np.count_nonzero(row > row[item]) + np.count_nonzero(row[:item] == row[item]) for item in items]
        return np.sort(np.array(ahead, dtype=np.int64)) + 1
    places = np.empty(len(row), dtype=np.int64)
    places[np.argsort(-row, kind="stable")] = np.arange(1, len(row) + 1)
    return np.sort(places[items])


class _Mask:
    """Counts true comparisons along the last axis faster than ``count_nonzero(axis=-1)``, in memory kept
    from call to call."""

    def __init__(self, items: int):
        self._items = items
        self._padded = -(-items // (8 * _WORDS)) * 8 * _WORDS
        self._store = np.zeros((0, self._padded), dtype=bool)

    def count(self, compare: np.ufunc, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Returns the number of true ``compare(left, right)`` over the N items, (R, P) for (R, P, N)."""
        shape = (left.shape[0], right.shape[1])
        needed = shape[0] * shape[1]
        if needed > len(self._store):
            self._store = np.zeros((needed, self._padded), dtype=bool)
        mask = self._store[:needed].reshape(*shape, self._padded)
        compare(left, right, out=mask[..., : self._items])
        words = mask.view(np.uint64).reshape(needed, -1, _WORDS).sum(axis=2)
        return words.view(np.uint8).sum(axis=1, dtype=np.int64).reshape(shape)
