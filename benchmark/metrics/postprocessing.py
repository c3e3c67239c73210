"""What is done to embeddings before they are searched: PCA whitening and query expansion."""

import logging
from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.metrics.ranks import unit_rows
from benchmark.metrics.search import nearest_in_blocks, nearest_neighbours

logger = logging.getLogger(__name__)

BLOCK = 4096  # rows turned into float64 at a time
# A direction whose variance is this small beside the largest holds rounding errors, which whitening
# would blow up.
NEGLIGIBLE = 1e-10
SPLIT_SUFFIX = "+aqe"  # of the splits whose queries were expanded


@dataclass(frozen=True)
class Whitening:
    """Centering by ``mean`` (D,) and projection on whitened ``axes`` (D, K), both float64."""

    mean: np.ndarray
    axes: np.ndarray

    def project(self, rows: np.ndarray) -> np.ndarray:
        """Return whitened rows, float32 (N, K); those learnt on have identity covariance."""
        projected = np.empty((len(rows), self.axes.shape[1]), np.float32)
        for at in range(0, len(rows), BLOCK):
            projected[at : at + BLOCK] = (rows[at : at + BLOCK] - self.mean) @ self.axes
        return projected

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return whitened rows of unit length, float32 (N, K); a row of zeros stays zero."""
        projected = self.project(rows)
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
    for start in range(0, count, BLOCK):
        centered = rows[start : start + BLOCK] - mean
        covariance += centered.T @ centered
    variances, axes = np.linalg.eigh(covariance / (count - 1))
    variances, axes = variances[::-1][:dimensions], axes[:, ::-1][:, :dimensions]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dimensions)])
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
