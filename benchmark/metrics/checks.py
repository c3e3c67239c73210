"""Checks of embeddings and labels before any number is computed from them."""

from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError

# Rows this close to unit length are left as they are, so that scores are those of the caller's own
# vectors.
UNIT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class EmbeddedSet:
    """Unit rows float32 (N, D) with ``classes`` int64 (N,) that both sets number alike."""

    embeddings: np.ndarray
    classes: np.ndarray


def checked_sets(
    query, query_labels, gallery=None, gallery_labels=None
) -> tuple[EmbeddedSet, EmbeddedSet]:
    """Return query and gallery (the same without one); raise DataError for what does not fit."""
    if (gallery is None) != (gallery_labels is None):
        missing = "gallery" if gallery is None else "gallery_labels"
        raise DataError(
            f"retrieval: {missing} is missing; give gallery and gallery_labels together, or neither"
        )
    sides = [("query", query, query_labels)]
    if gallery is not None:
        sides.append(("gallery", gallery, gallery_labels))
    embeddings = [unit_rows(values, name) for name, values, _ in sides]
    labels = [
        _labels(values, len(rows), name)
        for (name, _, values), rows in zip(sides, embeddings, strict=True)
    ]
    if gallery is not None and embeddings[0].shape[1] != embeddings[1].shape[1]:
        raise DataError(
            f"retrieval: query embeddings have {embeddings[0].shape[1]} dimensions and gallery "
            f"embeddings {embeddings[1].shape[1]}; both must come from the same model"
        )
    classes = np.unique(np.concatenate(labels), return_inverse=True)[1].astype(np.int64)
    first = EmbeddedSet(embeddings[0], classes[: len(embeddings[0])])
    return first, first if gallery is None else EmbeddedSet(
        embeddings[1], classes[len(embeddings[0]) :]
    )


def unit_rows(values: np.ndarray, name: str) -> np.ndarray:
    """Return float32 (N, D) rows of unit length; a row of zeros stays: it is like nothing."""
    rows = np.asarray(values)
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(
            f"retrieval: {name} embeddings have shape {rows.shape}; needed: (items, dimensions)"
        )
    if rows.dtype.kind not in "fiu":
        raise DataError(
            f"retrieval: {name} embeddings are of type {rows.dtype}; needed: real numbers"
        )
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    broken = np.flatnonzero(~np.isfinite(norms))
    if len(broken):
        shown = ", ".join(map(str, broken[:5]))
        raise DataError(
            f"retrieval: {len(broken)} of {len(rows)} {name} embeddings are not finite (rows "
            f"{shown}{', ...' if len(broken) > 5 else ''}); the model has diverged or the images "
            "are broken"
        )
    if np.abs(norms - 1).max() <= UNIT_TOLERANCE:
        return rows
    return rows / np.where(norms > 0, norms, 1)[:, None]


def _labels(values: np.ndarray, count: int, name: str) -> np.ndarray:
    labels = np.asarray(values)
    if labels.shape != (count,):
        raise DataError(
            f"retrieval: {name} labels have shape {labels.shape}; needed: ({count},), one per "
            "embedding"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"retrieval: some {name} labels are not finite; every item needs a class")
    return labels
