"""Alpha query expansion: a query searches a second time together with what it found first."""

import numpy as np

from benchmark.metrics.ranks import unit_rows
from benchmark.metrics.search import nearest_in_blocks, nearest_neighbours

SPLIT_SUFFIX = "+aqe"  # of the splits whose queries were expanded


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
    rows, items = unit_rows(query), unit_rows(gallery)
    every = np.arange(len(rows))
    if distractors is None:
        neighbours, scores = nearest_neighbours(rows, every, k, items)
    else:
        neighbours, scores = nearest_in_blocks(rows, every, k, (items, distractors))
    weights = scores.clip(min=0.0) ** alpha
    expanded = rows.copy()
    for place in range(
        neighbours.shape[1]
    ):  # one neighbour of every query at a time: memory O(Q x D)
        chosen = _chosen(neighbours[:, place], items, distractors)
        expanded += weights[:, place, None] * chosen
    return unit_rows(expanded)


def _chosen(indices: np.ndarray, items: np.ndarray, distractors: np.ndarray | None) -> np.ndarray:
    """Return the unit rows (Q, D) of these indices, which count on from items to distractors."""
    if distractors is None:
        return items[indices]
    own = indices < len(items)
    rows = np.empty((len(indices), items.shape[1]), np.float32)
    rows[own] = items[indices[own]]
    if not own.all():
        rows[~own] = unit_rows(distractors[indices[~own] - len(items)])
    return rows
