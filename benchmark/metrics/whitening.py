"""PCA whitening of embeddings, learnt on images that are not evaluated on."""

import logging
from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError

logger = logging.getLogger(__name__)

BLOCK = 4096  # rows turned into float64 at a time
# A direction whose variance is this small beside the largest holds rounding errors, which whitening
# would blow up.
NEGLIGIBLE = 1e-10


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
            "whitening: %d training images vary along %d of the %d dimensions asked for; the "
            "others are zero",
            count,
            varies.sum(),
            dimensions,
        )
    return Whitening(mean, np.where(varies, axes / np.where(varies, variances, 1.0) ** power, 0.0))
