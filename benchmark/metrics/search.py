"""Nearest neighbours, exact, through a flat faiss index; whitening and expansion before a search.

Galleries of a million images are searched in blocks, without a copy of them.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.metrics.ranks import ClassIndex
from benchmark.metrics.rows import blocks
from benchmark.metrics.sets import DistinctRows, bits, unit_rows, unit_sets

logger = logging.getLogger(__name__)

ROWS = 4096  # rows turned into float64 at a time
# A direction whose variance is this small beside the largest holds rounding errors, which whitening
# would blow up.
NEGLIGIBLE = 1e-10
SPLIT_SUFFIX = "+aqe"  # of the splits whose queries were expanded


def nearest_neighbours(
    query: np.ndarray, queries: np.ndarray, neighbours: int, gallery: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return indices int64 and cosine similarities float32 of the nearest items, best first.

    Both are (Q, K): K is ``neighbours``, or all items there are. The rows ``queries`` (Q,) of
    ``query`` (N, D) search ``gallery`` (G, D). Without a gallery they search the other rows of
    ``query``: each query is left out by its index. Equal rows are searched once, so that they have
    equal scores. Equal scores come in the order of their index.
    """
    rows, items = unit_sets(query, gallery)
    together = gallery is None
    queries = np.asarray(queries, dtype=np.int64).reshape(-1)
    wanted = max(0, min(neighbours, len(items) - together))
    if len(queries) == 0 or wanted == 0:
        none = np.empty((len(queries), wanted))
        return none.astype(np.int64), none.astype(np.float32)
    asked = DistinctRows.of(rows[queries])
    distinct = DistinctRows.of(items)
    found, values = _best(asked.rows, distinct.rows, wanted + together)
    # of the copies of a row no more are of use than are wanted, and the query
    counts, members = ClassIndex(distinct.number).positives(np.arange(len(distinct.rows)), None)
    earlier = np.arange(len(members)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.sort(members[earlier <= wanted])
    copies = ClassIndex(distinct.number[first])
    found = found[asked.number]
    values = values[asked.number]
    counts, numbers = copies.positives(found.ravel(), None)
    indices = first[numbers]
    scores = np.repeat(values.ravel(), counts)
    asking = np.repeat(np.arange(len(queries)), found.shape[1])
    query_of = np.repeat(asking, counts)
    if together:
        others = indices != queries[query_of]
        indices = indices[others]
        scores = scores[others]
        query_of = query_of[others]
    order = np.lexsort((indices, -scores, query_of))
    starts = np.searchsorted(query_of, np.arange(len(queries)))
    chosen = order[starts[:, None] + np.arange(wanted)]
    return indices[chosen], scores[chosen]


def _best(rows: np.ndarray, items: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and scores (Q, K) of the best items, equal scores in the order of the index.

    Which of the items that tie at its last place faiss returns is not defined, so the search widens
    until the last place wanted is better than the last place found.
    """
    index = flat_index(items)
    wanted = min(wanted, index.ntotal)
    reach = wanted + 1
    while True:
        reach = min(reach, index.ntotal)
        scores, indices = index.search(rows, reach)
        worst = scores[:, -1]
        order = np.lexsort((indices, -scores))
        order = order[:, :wanted]
        best = np.take_along_axis(scores, order, axis=1)
        if reach == index.ntotal or (best[:, -1] > worst).all():
            return np.take_along_axis(indices, order, axis=1), best
        reach *= 2


def nearest_in_blocks(
    query: np.ndarray, queries: np.ndarray, neighbours: int, galleries: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what ``nearest_neighbours`` returns for several galleries (G_i, D) as one.

    Indices count on from gallery to gallery. Memory beside the galleries: one block of rows. The
    scores of equal rows in two blocks may differ in the last bit.
    """
    indices = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    before = 0  # rows of the galleries before
    for gallery in galleries:
        for chosen in blocks(len(gallery)):
            found, values = nearest_neighbours(query, queries, neighbours, gallery[chosen])
            indices = np.concatenate([indices, before + chosen.start + found], axis=1)
            scores = np.concatenate([scores, values], axis=1)
            order = np.lexsort((indices, -scores))[:, :neighbours]
            indices = np.take_along_axis(indices, order, axis=1)
            scores = np.take_along_axis(scores, order, axis=1)
        before += len(gallery)
    return indices, scores


def ranks_behind(
    rows: np.ndarray,
    items: np.ndarray,
    distractors: np.ndarray,
    scores: np.ndarray,
    relevant: Sequence[np.ndarray],
    ranks: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Return the ranks of relevant items among a gallery and distractors (N, D).

    ``rows`` (Q, D) are the queries and ``items`` (G, D) the gallery, unit rows; ``scores`` float32
    (Q, G) are their scores, in which the relevant items (P,) of a query have the ascending
    ``ranks`` (P,). A distractor that equals a relevant item has its score. Memory beside the
    distractors: one block of them.
    """
    moved = [of_query.copy() for of_query in ranks]
    # scores in falling order, because ranks ascend
    limits = [np.sort(row[wanted])[::-1] for row, wanted in zip(scores, relevant, strict=True)]
    asked = DistinctRows.of(rows)
    wanted = np.unique(np.concatenate(relevant))
    known = {bits(items[item]): item for item in wanted.tolist()}
    leading = items[wanted, 0]
    for chosen in blocks(len(distractors)):
        block = unit_sets(rows, distractors[chosen])[1]
        others = (asked.rows @ block.T)[asked.number]
        for number in np.flatnonzero(np.isin(block[:, 0], leading)):
            item = known.get(bits(block[number]))
            if item is not None:
                told = np.isfinite(scores[:, item])  # of queries that may find it
                others[told, number] = scores[told, item]
        others.sort(axis=1)
        for rank, row, values in zip(moved, others, limits, strict=True):
            rank += len(row) - np.searchsorted(row, values, side="right")
    return moved


class _Products:
    """faiss's flat index as torch computes it, where faiss is not installed."""

    def __init__(self, items: np.ndarray):
        self.items = items
        self.ntotal = len(items)

    def search(self, rows: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
        import torch

        products = (rows[chosen] @ self.items.T for chosen in blocks(len(rows)))
        best = (torch.from_numpy(block).topk(reach) for block in products)
        scores, indices = zip(*best, strict=True)
        return torch.cat(scores).numpy(), torch.cat(indices).numpy()


def flat_index(items: np.ndarray) -> Any:
    """Return an exact inner-product index of ``items`` (N, D), on GPUs if faiss has any."""
    try:
        import faiss  # a quarter of a second that only searching should cost
    except ModuleNotFoundError:
        return _Products(items)
    index: Any = faiss.IndexFlatIP(items.shape[1])
    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0:
        index = faiss.index_cpu_to_all_gpus(index)
    index.add(items)
    return index


class Whitening(NamedTuple):
    """Centering by ``mean`` (D,) and projection on whitened ``axes`` (D, K), both float64.

    Projections of the rows it is learnt on have identity covariance.
    """

    mean: np.ndarray
    axes: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return whitened rows of unit length, float32 (N, K); a row of zeros stays zero."""
        projected = np.empty((len(rows), self.axes.shape[1]), np.float32)
        for at in range(0, len(rows), ROWS):
            projected[at : at + ROWS] = (rows[at : at + ROWS] - self.mean) @ self.axes
        lengths = np.linalg.norm(projected, axis=1, keepdims=True)
        projected /= np.where(lengths > 0, lengths, 1)
        return projected


def learn_whitening(rows: np.ndarray, dimensions: int, power: float = 0.5) -> Whitening:
    """Return the whitening of embeddings (N, D) that keeps ``dimensions`` axes of large variance.

    Each axis is divided by its variance to the ``power``: 0.5 gives variance 1 (Jegou and Chum,
    ECCV 2012), 0.25 is what the published commands of Revaud et al., ICCV 2019, ask for. Axes come
    by falling variance, each with its largest component positive, so that equal rows give equal
    bits. An axis along which the rows do not vary, as when there are fewer rows than dimensions,
    gives zeros and a warning in the log. Non-finite rows give NaN. Raise DataError for fewer than
    two rows.
    """
    count, width = rows.shape
    if count < 2:
        raise DataError(f"whitening needs two training images or more, and there are {count}")
    if not np.isfinite(rows).all():
        return Whitening(np.full(width, np.nan), np.full((width, dimensions), np.nan))
    mean = rows.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((width, width))
    for start in range(0, count, ROWS):
        centered = rows[start : start + ROWS] - mean
        covariance += centered.T @ centered
    variances, axes = np.linalg.eigh(covariance / (count - 1))
    variances = variances[::-1][:dimensions]
    axes = axes[:, ::-1][:, :dimensions]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(dimensions)])
    varies = variances > NEGLIGIBLE * variances[0]
    if not varies.all():
        logger.warning(
            "whitening: %d training images vary along %d of the %d dimensions requested; the "
            "others are zero",
            count,
            varies.sum(),
            dimensions,
        )
    return Whitening(mean, np.where(varies, axes / np.where(varies, variances, 1.0) ** power, 0.0))


def expand_queries(
    query: np.ndarray,
    gallery: np.ndarray,
    alpha: float,
    k: int,
    distractors: np.ndarray | None = None,
) -> np.ndarray:
    """Return unit rows (Q, D): each query plus its ``k`` nearest items of the gallery (G, D), all
    there are if fewer, each weighted by its cosine similarity to the power ``alpha``.

    The query itself has similarity and so weight 1 (Radenovic et al., PAMI 2019; Revaud et al.,
    ICCV 2019, section 4.4, take alpha 2 and k 10). A negative similarity counts as 0. Equal scores
    come in the order of their index. ``distractors`` (N, D) are searched, in blocks, after the
    gallery.
    """
    rows, items = unit_sets(query, gallery)
    every = np.arange(len(rows))
    if distractors is None:
        neighbours, scores = nearest_neighbours(rows, every, k, items)
    else:
        neighbours, scores = nearest_in_blocks(rows, every, k, (items, distractors))
    weights = scores.clip(min=0.0) ** alpha
    expanded = rows.copy()
    chosen = np.empty_like(rows)
    for indices, weight in zip(neighbours.T, weights.T, strict=True):  # memory O(Q x D)
        inside = indices < len(items)  # the indices of distractors count on
        chosen[inside] = items[indices[inside]]
        if distractors is not None and not inside.all():
            chosen[~inside] = unit_rows(distractors[indices[~inside] - len(items)])
        expanded += weight[:, None] * chosen
    return unit_rows(expanded)
