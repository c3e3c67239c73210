"""Ranks of the positives of every query, exact and without sorting whole rankings.

The metrics need nothing but these ranks. The rank of item p in the row of scores s is
1 + #{j < p: s_j >= s_p} + #{j > p: s_j > s_p}: equal scores rank in the order of their index.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from benchmark.core.documents import whole_number
from benchmark.core.environment import available_cores
from benchmark.metrics.sets import DistinctRows, EmbeddedSet

BLOCK_BYTES = 128 * 2**20
# Scores handled by one call into numpy: enough that threads seldom meet at the interpreter's lock,
# few enough that they, their masks and sorted copies stay in the second-level cache.
SCORES_AT_ONCE = 2**18
# Two passes over a row per item cost less than sorting it up to here (measured at 20,000 scores a
# row).
COUNTED_ITEMS = 6
# Where scores tie, up to so many items are counted one by one before a stable sort costs less.
TIED_ITEMS = 32

# The positives of a block of queries: the queries' numbers (B,), how many positives each has (B,),
# and their ranks, query by query, ascending within each query, 1 = nearest. Where labels are sets,
# also how many labels each positive shares with its query.
BlockRanks = tuple[np.ndarray, ...]


class ClassIndex:
    """Gallery items by class, so that a query's positives are a slice."""

    def __init__(self, classes: np.ndarray):
        self._order = np.argsort(classes, kind="stable")
        self._sorted = classes[self._order]

    def positives(
        self, labels: np.ndarray, left_out: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts (B,) and, flat, the items of each query's class in ascending order.

        ``left_out`` (B,): one item of each query's class that does not count.
        """
        starts = np.searchsorted(self._sorted, labels, side="left")
        ends = np.searchsorted(self._sorted, labels, side="right")
        counts = ends - starts
        offsets = np.cumsum(counts) - counts
        positions = np.arange(counts.sum()) + np.repeat(starts - offsets, counts)
        items = self._order[positions]
        if left_out is None:
            return counts, items
        return counts - 1, items[items != np.repeat(left_out, counts)]


class SetIndex:
    """Gallery items by sets of labels, a matrix of 0 and 1: positives share a label."""

    def __init__(self, sets: sparse.csr_array):
        self._items = sets.T.tocsr()

    def positives(
        self, sets: sparse.csr_array, left_out: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what ``ClassIndex`` does, and the number of labels that each item shares."""
        found = sets @ self._items
        found.sort_indices()
        counts = np.diff(found.indptr)
        if left_out is None:
            return counts, found.indices, found.data
        others = found.indices != np.repeat(left_out, counts)
        return counts - 1, found.indices[others], found.data[others]


def _products(queries: np.ndarray, items: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.matmul(queries, items.T, out=out)


def positive_ranks(
    query: EmbeddedSet,
    gallery: EmbeddedSet,
    threads: int | None = None,
    products: Callable[[np.ndarray, Any, np.ndarray], np.ndarray] = _products,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[BlockRanks]:
    """Yield the ranks of all positives, block by block of queries.

    ``gallery is query`` means that each item queries all the others. ``products`` returns the
    scores (B, U) of some queries (B, D), in the memory of its last argument. Memory: one block of
    scores.
    """
    index: Any = ClassIndex
    if sparse.issparse(gallery.classes):
        index = SetIndex
    index = index(gallery.classes)
    rows = query.items.rows
    items = gallery.items.rows
    size = block_size(len(gallery.items.number), 4 * block_bytes // rows.dtype.itemsize)
    shape = (min(size, len(rows)), len(items))
    buffer = np.empty(shape, rows.dtype)

    def multiply(chosen: slice) -> np.ndarray:
        queries = rows[chosen]
        return products(queries, items, buffer[: len(queries)])

    # OMP_NUM_THREADS is what matrix products obey, too
    set_threads = whole_number(os.environ.get("OMP_NUM_THREADS", ""))
    threads = threads or set_threads or available_cores()
    with ThreadPoolExecutor(threads) as pool:
        for numbers, scores in score_blocks(query.items, gallery.items, multiply, size=size):
            itself = numbers if gallery is query else None
            if itself is not None:
                scores[np.arange(len(itself)), itself] = -np.inf
            counts, positives, *shared = index.positives(query.classes[numbers], itself)
            # Several shares per thread keep all threads busy to the end, whatever the sizes of the
            # classes.
            shares = 4 * threads
            counts_of_share = np.array_split(counts, shares)
            ends = np.cumsum([share.sum() for share in counts_of_share])
            positives_of_share = np.split(positives, ends[:-1])
            scores_of_share = np.array_split(scores, shares)
            rank = item_ranks if shared else rank_rows
            ranked = pool.map(rank, scores_of_share, counts_of_share, positives_of_share)
            ranks = np.concatenate(list(ranked))
            if shared:
                order = np.lexsort((ranks, np.repeat(np.arange(len(counts)), counts)))
                ranks = ranks[order]
                shared = [shared[0][order]]
            yield numbers, counts, ranks, *shared


def positive_ranks_on(
    device: str, query: EmbeddedSet, gallery: EmbeddedSet
) -> Iterator[BlockRanks]:
    """Yield the blocks of ``positive_ranks``, computed on a torch device by a stable sort.

    It is fast on a GPU. Products are in full float32, whatever shortcut training may have allowed.
    """
    import torch  # only where a device is given

    def on_device(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(device)

    def multiply(chosen: slice) -> torch.Tensor:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            return rows[chosen] @ items.T
        finally:
            torch.set_float32_matmul_precision(before)

    def take(products: torch.Tensor, indices: np.ndarray, axis: int) -> torch.Tensor:
        return products.index_select(axis, on_device(indices))

    rows = on_device(query.items.rows)
    classes = on_device(query.classes)
    together = gallery is query
    items = rows if together else on_device(gallery.items.rows)
    item_classes = classes if together else on_device(gallery.classes)
    for numbers, scores in score_blocks(query.items, gallery.items, multiply, take):
        asked = on_device(numbers)
        if together:  # the query itself ranks last and is cut off
            row = torch.arange(len(asked), device=device)
            scores[row, asked] = -torch.inf
        order = scores.sort(dim=1, descending=True, stable=True).indices
        others = order[:, : len(item_classes) - together]
        matches = item_classes[others] == classes[asked, None]
        counts = matches.sum(dim=1)
        ranks = matches.nonzero()[:, 1] + 1
        yield numbers, counts.cpu().numpy(), ranks.cpu().numpy()


def block_size(items: int, block_bytes: int = BLOCK_BYTES) -> int:
    """Return how many rows of ``items`` float32 scores make a block."""
    return max(1, block_bytes // (4 * items))


def score_blocks(
    query: DistinctRows,
    gallery: DistinctRows,
    multiply: Callable[[slice], Any],
    take: Callable[[Any, np.ndarray, int], Any] = np.take,
    size: int | None = None,
) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield numbers of queries (B,), in order where no two are equal, and their scores (B, N).

    ``multiply`` returns the products of a slice of the query's rows with all rows of the gallery;
    ``take`` picks indices along an axis of them. Memory: one block of scores.
    """
    size = size or block_size(len(gallery.number))
    order = np.argsort(query.number, kind="stable")
    for low in range(0, len(query.rows), size):
        products = multiply(slice(low, low + size))
        begin, end = np.searchsorted(query.number[order], [low, low + size]).tolist()
        for start in range(begin, end, size):
            numbers = order[start : min(start + size, end)]
            scores = products
            if len(query.rows) < len(query.number):
                scores = take(scores, query.number[numbers] - low, 0)
            if len(gallery.rows) < len(gallery.number):
                scores = take(scores, gallery.number, 1)
            yield numbers, scores


def rank_rows(scores: np.ndarray, counts: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the ranks (T,) of ``item_ranks``, ascending in each row."""
    ranks = item_ranks(scores, counts, items)
    rows = np.repeat(np.arange(len(scores)), counts)
    return ranks[np.lexsort((ranks, rows))]


def item_ranks(scores: np.ndarray, counts: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the rank (T,) of each of ``items`` (T,) in its row; 1 is best, ties by index.

    ``scores`` (R, N); ``counts`` (R,) says how many of ``items`` belong to each row, sum T.
    """
    bounds = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(scores)), counts)
    values = scores[rows, items]
    above, at_least = np.empty((2, len(items)), dtype=np.int64)
    together = max(1, SCORES_AT_ONCE // max(1, scores.shape[1]))
    starts = range(0, len(scores), together)
    for low, high in pairwise([*starts, len(scores)]):
        chosen = slice(bounds[low], bounds[high])
        count = _count_by_sorting
        if counts[low:high].max() <= COUNTED_ITEMS:
            count = _count_by_comparing
        bounds_here = bounds[low : high + 1] - bounds[low]
        above[chosen], at_least[chosen] = count(scores[low:high], bounds_here, values[chosen])
    ranks = above + 1
    tied = ranks != at_least
    for row in np.unique(rows[tied]):
        chosen = slice(bounds[row], bounds[row + 1])
        ranks[chosen] = _ranks_with_ties(scores[row], items[chosen])
    return ranks


def _count_by_comparing(
    scores: np.ndarray, bounds: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many scores of its row are above, and at least, each of ``values``.

    The values of row i are ``bounds[i]`` to ``bounds[i + 1]``.
    """
    counts = np.diff(bounds)
    taken = np.arange(counts.max()) < counts[:, None]
    limits = np.full((*taken.shape, 1), np.inf, scores.dtype)
    limits[taken, 0] = values

    def count(compare: np.ufunc) -> np.ndarray:
        # packed bits are counted faster than bytes
        packed = np.packbits(compare(scores[:, None, :], limits), axis=2)
        return np.bitwise_count(packed).sum(axis=2, dtype=np.uint32)[taken]

    return count(np.greater), count(np.greater_equal)


def _count_by_sorting(
    scores: np.ndarray, bounds: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what ``_count_by_comparing`` does."""
    above, at_least = np.empty((2, len(values)), dtype=np.int64)
    ascending = np.sort(scores, axis=1)
    for row, (low, high) in zip(ascending, pairwise(bounds.tolist()), strict=True):
        asked = values[low:high]
        above[low:high] = len(row) - np.searchsorted(row, asked, side="right")
        at_least[low:high] = len(row) - np.searchsorted(row, asked, side="left")
    return above, at_least


def _ranks_with_ties(row: np.ndarray, items: np.ndarray) -> np.ndarray:
    if len(items) <= TIED_ITEMS:
        ahead = []
        for item in items:
            above = np.count_nonzero(row > row[item])
            tied_before = np.count_nonzero(row[:item] == row[item])
            ahead.append(above + tied_before)
        return np.array(ahead, dtype=np.int64) + 1
    ranks = np.empty(len(row), dtype=np.int64)
    order = np.argsort(-row, kind="stable")
    ranks[order] = np.arange(1, len(row) + 1)
    return ranks[items]
