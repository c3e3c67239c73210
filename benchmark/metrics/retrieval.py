"""The metrics of a set of embeddings, by labels or by judged lists, in one pass over blocks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import RECALL, QueryScores
from benchmark.metrics.metric import METRICS, Ranked, trapezoids
from benchmark.metrics.ranks import positive_ranks, positive_ranks_on, rank_rows, score_blocks
from benchmark.metrics.search import ranks_behind
from benchmark.metrics.sets import DistinctRows, checked_depths, embedded_sets, unit_sets

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
    are not of unit length are normalised, whatever their length. Labels are whole numbers of any
    type, or text, one for each row. Without a gallery each item queries all the others: the query
    is left out by its index. Equal rows have equal scores, and equal scores rank in the order of
    their index; rounding orders different rows whose scores are equal on paper. Queries without a
    positive are left out of the means and counted in a log warning (``evaluate_retrieval`` returns
    the count); a K beyond the gallery's size looks at the whole gallery. With the query's positives
    at ranks r_1 < ... < r_P, precision at the i-th is i / r_i and mAP = mean_i i / r_i, mAP@R =
    sum_{r_i <= P} i / r_i / P (Musgrave et al., ECCV 2020, section 2.1). ``device``: a torch device
    ("cuda") that ranks instead of the processor. ``threads``: for counting ranks; None means
    OMP_NUM_THREADS, else all processors. Raise DataError for shapes that do not belong together,
    missing labels, a K below 1, embeddings that are not finite, and where no query has a positive.
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
    depths = checked_depths(recall_at)
    queries, items = embedded_sets(query, query_labels, gallery, gallery_labels)
    if device is None:
        blocks = positive_ranks(queries, items, threads)
    else:
        blocks = positive_ranks_on(device, queries, items)
    measures = {}
    for metric in METRICS.values():
        for k in depths if metric.has_k else [0]:
            measures[metric.at(k)] = (metric, k)
    sums = dict.fromkeys(measures, 0.0)
    total = len(queries.classes)
    kept: dict[str, list[np.ndarray]] = defaultdict(list)  # by name: an array for each block
    for numbers, counts, ranks in blocks:
        some = np.flatnonzero(counts)
        if not len(some):
            continue
        ranked = Ranked.of(counts[some], ranks)
        kept["query"].append(numbers[some])
        kept["nearest"].append(ranked.nearest)
        for name, (metric, k) in measures.items():
            values = metric.per_query(ranked, k)
            sums[name] += float(values.sum())
            if not name.startswith(RECALL):  # recalls follow from the nearest positive
                kept[name].append(values)
    if not kept:
        raise DataError(
            f"retrieval: none of the {total} queries has a positive to find; evaluation needs "
            "classes with at least two images, or a gallery with the queries' classes"
        )
    order = np.argsort(np.concatenate(kept["query"]))
    if skipped := total - len(order):
        message = "%d of %d queries have no positive and are left out of the means"
        logger.warning(message, skipped, total)
    means = {name: float(np.clip(sums[name] / len(order), 0.0, 1.0)) for name in sums}
    ordered = {name: np.concatenate(kept[name])[order] for name in sorted(kept)}
    number = ordered.pop("query")
    nearest = ordered.pop("nearest")
    scores = QueryScores(number, np.asarray(query_labels)[number], nearest, ordered)
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
    rows, items = unit_sets(query, gallery)
    every = np.arange(len(rows))
    classes = every if labels is None else labels
    for name, given in (("judgements", judgements.relevant), ("labels", classes)):
        if len(given) != len(rows):
            raise DataError(f"retrieval: {len(given)} {name} for {len(rows)} queries")
    distinct = DistinctRows.of(rows)
    searched = DistinctRows.of(items)
    total = 0.0
    nearest = np.empty(len(rows), dtype=np.int64)
    average = np.empty(len(rows))
    for numbers, scores in score_blocks(
        distinct, searched, lambda chosen: distinct.rows[chosen] @ searched.rows.T
    ):
        split = judged_ranks(rows[numbers], items, scores, judgements, numbers, distractors)
        averages = []
        for ranks_of_query in split:
            areas = trapezoids(np.arange(1, len(ranks_of_query) + 1), ranks_of_query)
            averages.append(float(np.mean(areas)))
        total += sum(averages)
        nearest[numbers] = [ranks_of_query[0] for ranks_of_query in split]
        average[numbers] = averages
    return total / len(rows), QueryScores(every, classes, nearest, {"map": average})


def judged_ranks(
    rows: np.ndarray,
    items: np.ndarray,
    scores: np.ndarray,
    judgements: Judgements,
    queries: Sequence[int] | np.ndarray,
    distractors: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Return the ranks int64 (P,), ascending, of the relevant items of each of ``queries`` (n,).

    ``rows`` (n, D) are theirs, ``scores`` (n, G) compare them with ``items`` (G, D); those of
    ignored items are overwritten. ``distractors`` (N, D) are searched after the items.
    """
    for row, query in zip(scores, queries, strict=True):
        row[judgements.ignored[query]] = -np.inf
    relevant = [judgements.relevant[query] for query in queries]
    counts = np.array([len(some) for some in relevant])
    ranks = rank_rows(scores, counts, np.concatenate(relevant).astype(np.int64))
    split = np.split(ranks, np.cumsum(counts)[:-1])
    if distractors is None:
        return split
    return ranks_behind(rows, items, distractors, scores, relevant, split)
