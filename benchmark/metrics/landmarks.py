"""Mean average precision of the revisited Oxford and Paris benchmarks: judged lists and junk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmark.core.results import QueryScores
from benchmark.metrics.ranks import block_size, rank_rows, unit_rows
from benchmark.metrics.search import count_above

if TYPE_CHECKING:
    from benchmark.datasets.base import Judgements


def landmark_map(
    query: np.ndarray,
    gallery: np.ndarray,
    judgements: Judgements,
    distractors: np.ndarray | None = None,
) -> float:
    """Return the mAP of ``landmark_scores``, in [0, 1]."""
    return landmark_scores(query, gallery, judgements, distractors)[0]


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
        of_block = [_average_precision(part) for part in split]
        total += sum(of_block)
        found += [(part[0], average) for part, average in zip(split, of_block, strict=True)]
    nearest, average = map(np.array, zip(*found, strict=True))
    number = np.arange(len(rows))
    own = number if labels is None else labels
    return total / len(rows), QueryScores(number, own, nearest, {"map": average})


def ranks_behind(
    rows: np.ndarray,
    distractors: np.ndarray,
    scores: np.ndarray,
    relevant: Sequence[np.ndarray],
    ranks: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Return the ranks of relevant items among a gallery and distractors (N, D).

    rows      unit rows (Q, D) of the queries
    scores    float32 (Q, G) of the gallery
    ranks     per query: the ascending ranks (P,) of its relevant items in the gallery alone
    """
    limits = [
        np.sort(row[chosen])[::-1] for row, chosen in zip(scores, relevant, strict=True)
    ]  # falling scores, as ranks ascend
    above = count_above(rows, distractors, limits)
    return [own + count for own, count in zip(ranks, above, strict=True)]


def _average_precision(ranks: np.ndarray) -> float:
    """Return AP by trapezoids of the ascending ranks (P,) of all relevant items, 1 = nearest."""
    found = np.arange(len(ranks))
    before = np.where(ranks > 1, found / np.maximum(ranks - 1, 1), 1.0)
    return float(np.mean((before + (found + 1) / ranks) / 2))
