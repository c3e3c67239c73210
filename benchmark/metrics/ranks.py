"""Ranks of the positives of every query, exact and without sorting whole rankings.

Recall@K, mAP@R and mAP need nothing but these ranks. The rank of item p in the row of scores s is
1 + #{j < p: s_j >= s_p} + #{j > p: s_j > s_p}: equal scores rank in the order of their index.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmark.core.environment import available_cores
from benchmark.core.plain import whole_number
from benchmark.metrics.checks import EmbeddedSet
from benchmark.metrics.rows import rank_rows

BLOCK_BYTES = 128 * 2**20


@dataclass(frozen=True)
class BlockRanks:
    """Positives of a block of queries: ``counts`` (B,) per query; ``ranks`` (sum of counts,), query
    by query, ascending within each query, 1 = nearest."""

    counts: np.ndarray
    ranks: np.ndarray


class ClassIndex:
    """Gallery items by class, so that a query's positives are a slice."""

    def __init__(self, classes: np.ndarray):
        self._order = np.argsort(classes, kind="stable")
        self._sorted = classes[self._order]

    def positives(
        self, labels: np.ndarray, own: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (B,) counts and, flat, the items of each query's class in ascending order; ``own``
        (B,) are items to leave out, one per query."""
        starts = np.searchsorted(self._sorted, labels, side="left")
        counts = np.searchsorted(self._sorted, labels, side="right") - starts
        offsets = np.cumsum(counts) - counts
        items = self._order[np.arange(counts.sum()) + np.repeat(starts - offsets, counts)]
        if own is None:
            return counts, items
        return counts - 1, items[items != np.repeat(own, counts)]


def positive_ranks(
    query: EmbeddedSet, gallery: EmbeddedSet, threads: int | None = None
) -> Iterator[BlockRanks]:
    """Yield the ranks of all positives, block by block of queries.

    ``gallery is query`` means that each item queries all the others. Memory: one block of scores.
    """
    index = ClassIndex(gallery.classes)
    items, starts = len(gallery.embeddings), block_starts(query, gallery)
    size = starts.step
    buffer = np.empty((size, items), dtype=np.float32)
    threads = threads or default_threads()
    with ThreadPoolExecutor(threads) as pool:
        for start in starts:
            stop = min(start + size, len(query.embeddings))
            scores = buffer[: stop - start]
            np.matmul(query.embeddings[start:stop], gallery.embeddings.T, out=scores)
            own = np.arange(start, stop) if gallery is query else None
            if own is not None:
                scores[own - start, own] = -np.inf
            counts, positives = index.positives(query.classes[start:stop], own)
            bounds = np.concatenate([[0], np.cumsum(counts)])
            # Several parts per thread keep all of them busy to the end, whatever the sizes of the
            # classes.
            edges = np.unique(np.linspace(0, len(scores), 4 * threads + 1).astype(int))
            parts = [slice(low, high) for low, high in pairwise(edges.tolist())]
            ranked = pool.map(
                rank_rows,
                [scores[part] for part in parts],
                [counts[part] for part in parts],
                [positives[bounds[part.start] : bounds[part.stop]] for part in parts],
            )
            yield BlockRanks(counts, np.concatenate(list(ranked)))


def block_starts(query: EmbeddedSet, gallery: EmbeddedSet) -> range:
    """Return the first query of each block; the step is the size of a block."""
    queries = len(query.embeddings)
    return range(0, queries, min(block_size(len(gallery.embeddings)), queries))


def block_size(items: int) -> int:
    """Return how many rows of ``items`` float32 scores make a block."""
    return max(1, BLOCK_BYTES // (4 * items))


def default_threads() -> int:
    """Return OMP_NUM_THREADS, which matrix products obey, too, else the usable processors."""
    return whole_number(os.environ.get("OMP_NUM_THREADS", "")) or available_cores()
