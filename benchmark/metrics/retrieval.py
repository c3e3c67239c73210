"""The metrics of a set of embeddings, by labels or by judged lists, in one pass over blocks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import RECALL, QueryScores
from benchmark.metrics.metric import METRICS, Ranked
from benchmark.metrics.ranks import (
    block_size,
    embedded_sets,
    positive_ranks,
    positive_ranks_on,
    rank_rows,
    unit_rows,
)
from benchmark.metrics.search import ranks_behind

if TYPE_CHECKING:
    from benchmark.datasets.base import Judgements

logger = logging.getLogger(__name__)


class Retrieval(NamedTuple):
    """``metrics`` in [0, 1], means over ``queries``; ``skipped`` more queries have no positive to
    find. ``scores`` are those of the queries, in their order, without the skipped ones."""

    metrics: dict[str, float]
    queries: int
    skipped: int
    scores: QueryScores


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
    """Return ``METRICS``: ``recall_at_K`` for each K, ``map_at_r`` and ``map``, all in [0, 1].

    ``query`` (Q, D) and ``gallery`` (G, D) are compared by cosine similarity in float32; rows that
    are not of unit length are normalised. Without a gallery each item queries all the others: the
    query is left out by its index. Equal scores rank in the order of their index. Queries without a
    positive are left out of the means and counted in a log warning (``evaluate_retrieval`` returns
    the count); a K beyond the gallery's size looks at the whole gallery. With the query's positives
    at ranks r_1 < ... < r_P, precision at the i-th is i / r_i and mAP = mean_i i / r_i, mAP@R =
    sum_{r_i <= P} i / r_i / P (Musgrave et al., ECCV 2020, section 2.1). ``device``: a torch device
    ("cuda") that ranks instead of the processor. ``threads``: for counting ranks; None means
    OMP_NUM_THREADS, else all processors. Raise DataError for embeddings that are not finite, and
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
        blocks = positive_ranks(queries, items, threads)
    else:
        blocks = positive_ranks_on(device, queries, items)
    names = {
        metric.at(k): (metric, k)
        for metric in METRICS.values()
        for k in (recall_at if metric.has_k else (0,))
    }
    # recalls of the queries follow from their nearest positive
    kept = ["nearest", *sorted(name for name in names if not name.startswith(RECALL))]
    sums, total, found, asked = dict.fromkeys(names, 0.0), len(queries.classes), [], []
    start = 0
    for counts, ranks in blocks:
        some = np.flatnonzero(counts)
        asked.append(some + start)
        start += len(counts)
        if len(some):
            ranked = Ranked.of(counts[some], ranks)
            values = {name: each.per_query(ranked, k) for name, (each, k) in names.items()}
            sums = {name: sums[name] + float(values[name].sum()) for name in names}
            values["nearest"] = ranked.nearest
            found.append([values[name] for name in kept])
    if not found:
        raise DataError(
            f"retrieval: none of the {total} queries has a positive to find; evaluation needs "
            "classes with at least two images, or a gallery with the queries' classes"
        )
    number = np.concatenate(asked)
    if skipped := total - len(number):
        words = "%d of %d queries have no positive and are left out of the means"
        logger.warning(words, skipped, total)
    means = {name: float(np.clip(each / len(number), 0.0, 1.0)) for name, each in sums.items()}
    nearest, *averages = map(np.concatenate, zip(*found, strict=True))
    by_name = dict(zip(kept[1:], averages, strict=True))
    scores = QueryScores(number, np.asarray(query_labels)[number], nearest, by_name)
    return Retrieval(means, len(number), skipped, scores)


def landmark_scores(
    query: np.ndarray,
    gallery: np.ndarray,
    judgements: Judgements,
    distractors: np.ndarray | None = None,
    labels: np.ndarray | None = None,
) -> tuple[float, QueryScores]:
    """Return the mAP in [0, 1], and the scores, of queries (Q, D) that search a gallery (G, D).

    They are compared by cosine similarity, and the gallery's items that a query ignores are taken
    out of its ranking. With its P relevant items at ranks r_1 < ... < r_P of what is left, the area
    under precision and recall is added up in trapezoids::

        AP = 1/P sum over i of (p_i + i / r_i) / 2,   p_i = (i - 1) / (r_i - 1), or 1 where r_i = 1

    (the rule of these benchmarks' own evaluation, Radenovic et al., CVPR 2018; never above the mean
    of i / r_i that ``retrieval_metrics`` calls map). Equal scores rank in the order of their index.
    ``distractors`` (N, D) are searched after the gallery, in blocks, and relevant to no query.
    ``labels`` (Q,) are the queries' classes; without them each query is its own.
    Memory: one block of scores. Each query has a relevant item, and none is named twice.
    """
    rows, items = unit_rows(query), unit_rows(gallery)
    size = block_size(len(items))
    total, found = 0.0, []
    for start in range(0, len(rows), size):
        scores = rows[start : start + size] @ items.T
        relevant = judgements.relevant[start : start + size]
        for row, ignored in zip(scores, judgements.ignored[start : start + size], strict=True):
            row[ignored] = -np.inf
        counts = np.array([len(found) for found in relevant])
        ranks = rank_rows(scores, counts, np.concatenate(relevant).astype(np.int64))
        split = np.split(ranks, np.cumsum(counts)[:-1])
        if distractors is not None:
            chosen = rows[start : start + size]
            split = ranks_behind(chosen, distractors, scores, relevant, split)
        of_block = [_by_trapezoids(part) for part in split]
        total += sum(of_block)
        found += [(part[0], average) for part, average in zip(split, of_block, strict=True)]
    nearest, average = map(np.array, zip(*found, strict=True))
    number = np.arange(len(rows))
    own = number if labels is None else labels
    return total / len(rows), QueryScores(number, own, nearest, {"map": average})


def _by_trapezoids(ranks: np.ndarray) -> float:
    """Return AP of the ascending ranks (P,) of all relevant items, 1 = nearest."""
    found = np.arange(len(ranks))
    before = np.where(ranks > 1, found / np.maximum(ranks - 1, 1), 1.0)
    return float(np.mean((before + (found + 1) / ranks) / 2))
