"""Nearest neighbours of a fixed set of queries, exact, through a flat faiss index.

Galleries of a million images are searched in blocks, without a copy of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmark.metrics.ranks import unit_rows

BLOCK = 16_384  # rows of a large gallery that are searched at once


def nearest_neighbours(
    query: np.ndarray, queries: np.ndarray, neighbours: int, gallery: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices int64 and cosine similarities float32, both (Q, K), best first, of the nearest
    items to the rows ``queries`` (Q,) of ``query`` (N, D): in ``gallery`` (G, D) or, without one,
    among the other rows of ``query`` (each query is left out by its index). Equal scores come in
    the order of their index.

    K is ``neighbours``, or all there are.
    """
    rows = unit_rows(query)
    items = rows if gallery is None else unit_rows(gallery)
    queries = np.asarray(queries, dtype=np.int64).reshape(-1)
    wanted = max(0, min(neighbours, len(items) - (gallery is None)))
    if len(queries) == 0 or wanted == 0:
        return np.empty((len(queries), wanted), np.int64), np.empty(
            (len(queries), wanted), np.float32
        )
    own = queries if gallery is None else np.full(len(queries), -1)
    return _search(flat_index(items), rows[queries], own, wanted)


def nearest_in_blocks(
    query: np.ndarray, queries: np.ndarray, neighbours: int, parts: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what ``nearest_neighbours`` returns for a gallery given in parts (G_i, D).

    Indices count on from part to part. Memory beside the parts: one block of them.
    """
    indices = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    for start, block in _blocks(parts):
        found, values = nearest_neighbours(query, queries, neighbours, block)
        indices = np.concatenate([indices, found + start], axis=1)
        scores = np.concatenate([scores, values], axis=1)
        order = np.lexsort((indices, -scores))[:, :neighbours]
        indices = np.take_along_axis(indices, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
    return indices, scores


def count_above(
    rows: np.ndarray, items: np.ndarray, limits: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return, for each of ``limits[q]`` (P_q,), how many items (N, D) query q scores higher: int64.

    ``rows`` (Q, D) are the queries, unit rows. Memory beside the items: one block of them.
    """
    counts = [np.zeros(len(values), np.int64) for values in limits]
    for _, block in _blocks([items]):
        scores = np.sort(rows @ unit_rows(block).T, axis=1)
        for count, row, values in zip(counts, scores, limits, strict=True):
            count += len(row) - np.searchsorted(row, values, side="right")
    return counts


def _blocks(parts: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of the first row, and the rows, of each block."""
    offset = 0
    for part in parts:
        for start in range(0, len(part), BLOCK):
            yield offset + start, part[start : start + BLOCK]
        offset += len(part)


def flat_index(items: np.ndarray) -> Any:
    """Return an exact inner-product index of ``items`` (N, D), on GPUs if faiss has any."""
    import faiss  # a quarter of a second that only searching should cost

    index: Any = faiss.IndexFlatIP(items.shape[1])
    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0:
        index = faiss.index_cpu_to_all_gpus(index)
    index.add(items)
    return index


def _search(
    index: Any, rows: np.ndarray, own: np.ndarray, wanted: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and scores (Q, wanted) without ``own`` (-1: none); ties by index.

    Which of the items that tie at its last place faiss returns is not defined, so the search widens
    until the last place wanted is better than the last place found.
    """
    reach = wanted + 2
    while True:
        reach = min(reach, index.ntotal)
        scores, indices = index.search(rows, reach)
        worst = scores[:, -1].copy()
        scores[indices == own[:, None]] = -np.inf
        order = np.lexsort((indices, -scores))[:, :wanted]
        scores = np.take_along_axis(scores, order, axis=1)
        if reach == index.ntotal or (scores[:, -1] > worst).all():
            return np.take_along_axis(indices, order, axis=1), scores
        reach *= 2
