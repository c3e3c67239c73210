"""Re-ranking by k-reciprocal neighbours among the queries and the gallery together.

Zhong et al., CVPR 2017, sections 3.2 to 3.4, as their code has it
(zhunzhong07/person-re-ranking@f952e80, python-version/re_ranking_ranklist.py): squared distances
are divided by the largest of their row, and weights by the sum of their row.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.metrics.ranks import block_size
from benchmark.metrics.rows import EmbeddedRows, Space
from benchmark.metrics.sets import similarities, unit_rows

K1 = 20
K2 = 6
DISTANCE = 0.3  # lambda: weight of the first distance
MOST_ROWS = 50_000
SPARED = 4  # of the memory of a block, for its order


def neighbours(rows: Array) -> tuple[Array, Array]:
    """Return the K1 + 1 nearest (N, K1 + 1) of unit rows (N, D), each itself first, and the largest
    1 - cosine (N,) of each. Equal distances come in the order of the rows."""
    every = np.arange(len(rows))
    nearest = []
    least = []
    for block in np.array_split(every, 1 + len(rows) // block_size(SPARED * len(rows))):
        scores = similarities(rows[block], rows)
        least.append(scores.min(axis=1))
        scores[every[: len(block)], block] = np.inf
        nearest.append(np.argsort(-scores, kind="stable")[:, : K1 + 1].copy())
    return np.concatenate(nearest), np.maximum(1 - np.concatenate(least), 1e-9)


def encoded(rows: Array, nearest: Array, largest: Array) -> Any:
    """Return V (N, N), sparse: the weights of each row's expanded k-reciprocal neighbours."""

    def matrix(most: int) -> Any:
        columns = nearest[:, :most]
        ends = np.arange(0, columns.size + 1, columns.shape[1])
        return sparse.csr_array((np.ones(columns.size), columns.ravel(), ends))

    found, half = (
        each.multiply(each.T).tocsr() for each in map(matrix, (K1 + 1, round(K1 / 2) + 1))
    )
    common = (found @ half.T).multiply(found).tocsr()
    common.data *= 3 * common.data > 2 * half.sum(axis=1)[common.indices]
    common.eliminate_zeros()
    weights = found + common @ half
    for row, (start, end) in enumerate(pairwise(weights.indptr)):
        similar = rows[weights.indices[start:end]] @ rows[row]
        own = np.exp((similar - 1) / largest[row])
        weights.data[start:end] = own / own.sum()
    first = matrix(K2)
    return first @ weights / first[[0]].nnz


def reranked(
    embeddings: Any,
    alike: Mapping[str, Any],
    parts: Sequence[Array],
) -> list[EmbeddedRows]:
    """Return the rows of each part: queries and gallery, or one set. The first search the last.

    Their products are the scores after re-ranking. Raise DataError for more than ``MOST_ROWS``.
    """
    chosen = np.concatenate(parts)
    if len(chosen) > MOST_ROWS:
        raise DataError(
            f"rerank: {len(chosen):,} rows search each other (allowed: {MOST_ROWS:,}); leave it out"
        )
    rows = unit_rows(embeddings[chosen])
    nearest, largest = neighbours(rows)
    codes = encoded(rows, nearest, largest)
    searched = slice(len(chosen) - len(parts[-1]), None)
    by_neighbour = codes[searched].T.tocsr()

    def score(queries: Array, out: Array) -> Array:
        out[:] = similarities(rows[queries], rows[searched])
        for number, row in zip(queries, out, strict=True):
            own = codes[[number]]
            others = by_neighbour[own.indices]
            least = np.minimum(others.data, np.repeat(own.data, np.diff(others.indptr)))
            both = np.bincount(others.indices, least, len(row))
            jaccard = 1 - both / (2 - both)
            row[:] = (DISTANCE - 1) * jaccard - DISTANCE * (1 - row) / largest[number]
        return out

    found = []
    apart = {**alike, "itself": np.arange(embeddings.shape[0])}
    for part in parts:
        each = EmbeddedRows(embeddings, apart, part, Space([""]))
        each.kept = np.arange(len(part))
        each.score = score
        found.append(each)
    return found
