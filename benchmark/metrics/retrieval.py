"""Recall@K, mAP@R and mAP of a set of embeddings, in one pass over blocks of scores."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import QueryScores
from benchmark.metrics.ranks import BlockRanks, embedded_sets, positive_ranks

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retrieval:
    """``metrics`` in [0, 1], means over ``queries``; ``skipped`` more queries have no positive to
    find. ``scores`` are those of the queries, in their order, without the skipped ones."""

    metrics: dict[str, float]
    queries: int
    skipped: int
    scores: QueryScores


@dataclass(frozen=True)
class _Block:
    """Scores of a block of queries: ``positives`` (B,), the others for queries that have some."""

    positives: np.ndarray
    nearest: np.ndarray
    average_at_r: np.ndarray
    average: np.ndarray


def retrieval_metrics(
    query: np.ndarray,
    query_labels: np.ndarray,
    gallery: np.ndarray | None = None,
    gallery_labels: np.ndarray | None = None,
    recall_at: Sequence[int] = (1, 10, 100),
    *,
    device: str | None = None,
    threads: int | None = None,
) -> dict[str, float]:
    """Return ``recall_at_K`` for each K, ``map_at_r`` and ``map``, all in [0, 1].

    ``query`` (Q, D) and ``gallery`` (G, D) are compared by cosine similarity in float32; rows that
    are not of unit length are normalised. Without a gallery each item queries all the others: the
    query is left out by its index. Equal scores rank in the order of their index. Queries without a
    positive are left out of the means and counted in a log warning (``evaluate_retrieval`` returns
    the count); a K beyond the gallery's size looks at the whole gallery. With the query's positives
    at ranks r_1 < ... < r_P, precision at the i-th is i / r_i and mAP = mean_i i / r_i, mAP@R =
    sum_{r_i <= P} i / r_i / P (Musgrave et al., ECCV 2020, section 2.1). ``device``: a torch device
    ("cuda") that ranks instead of the processor. ``threads``: for counting ranks; None means
    OMP_NUM_THREADS, else all processors. Raises DataError for embeddings that are not finite, and
    where no query has a positive.
    """
    return evaluate_retrieval(
        query, query_labels, gallery, gallery_labels, recall_at, device=device, threads=threads
    ).metrics


def evaluate_retrieval(
    query: np.ndarray,
    query_labels: np.ndarray,
    gallery: np.ndarray | None = None,
    gallery_labels: np.ndarray | None = None,
    recall_at: Sequence[int] = (1, 10, 100),
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Retrieval:
    """Return the metrics with the scores of the queries they rest on.

    Arguments as in ``retrieval_metrics``.
    """
    queries, items = embedded_sets(query, query_labels, gallery, gallery_labels)
    if device is None:
        ranks = positive_ranks(queries, items, threads)
    else:
        # torch is imported only where a device is asked for.
        from benchmark.metrics.device import positive_ranks_on

        ranks = positive_ranks_on(device, queries, items)
    found = _averages(map(_by_query, ranks), list(recall_at), np.asarray(query_labels))
    if found.skipped:
        total = found.queries + found.skipped
        logger.warning(
            "%d of %d queries have no positive and are left out of the means", found.skipped, total
        )
    return found


def _averages(blocks: Iterable[_Block], recall_at: list[int], labels: np.ndarray) -> Retrieval:
    names = [*(f"recall_at_{k}" for k in recall_at), "map_at_r", "map"]
    sums = np.zeros(len(names))
    queries = skipped = 0
    asked, found = [], []
    for block in blocks:
        asked.append(np.flatnonzero(block.positives) + queries + skipped)
        queries += len(block.nearest)
        skipped += len(block.positives) - len(block.nearest)
        if len(block.nearest):
            hits = [float((block.nearest <= k).sum()) for k in recall_at]
            sums += [*hits, block.average_at_r.sum(), block.average.sum()]
            found.append((block.nearest, block.average_at_r, block.average))
    if queries == 0:
        raise DataError(
            f"retrieval: none of the {skipped} queries has a positive to find; evaluation needs "
            "classes with at least two images, or a gallery with the queries' classes"
        )
    values = np.clip(sums / queries, 0.0, 1.0)
    query = np.concatenate(asked)
    nearest, average_at_r, average = map(np.concatenate, zip(*found, strict=True))
    averages = {"map": average, "map_at_r": average_at_r}
    scores = QueryScores(query, labels[query], nearest, averages)
    return Retrieval(dict(zip(names, values.tolist(), strict=True)), queries, skipped, scores)


def _by_query(block: BlockRanks) -> _Block:
    """Return the rank of the nearest positive, AP@R and AP of each query of a block."""
    counts, ranks = block.counts[block.counts > 0], block.ranks
    if not len(counts):
        return _Block(block.counts, *np.zeros((3, 0)))
    starts = np.cumsum(counts) - counts
    nearest = ranks[starts]
    precision = (np.arange(len(ranks)) - np.repeat(starts, counts) + 1) / ranks
    within_r = np.where(ranks <= np.repeat(counts, counts), precision, 0.0)
    average = np.add.reduceat(precision, starts) / counts
    average_at_r = np.add.reduceat(within_r, starts) / counts
    return _Block(block.counts, nearest, average_at_r, average)
