"""Embeddings and labels as a caller hands them over: checked, of unit length, numbered.

Matrix products give equal rows scores that differ in the last bit, by their place in the product.
Each distinct row is therefore multiplied once, and its scores are copied to all that equal it.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError

# Rows so close to unit length are not normalised: the scores are of the caller's own vectors.
UNIT_TOLERANCE = 1e-5
# Between these lengths no square of a component that matters leaves the range of float32.
SHORT = 1e-10
LONG = 1e10


class DistinctRows(NamedTuple):
    """Rows float32 (U, D) of which no two are equal, and the ``number`` int64 (N,) of each item's
    row; they come in the order of their first item."""

    rows: np.ndarray
    number: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> "DistinctRows":
        """Return the distinct ones among rows (N, D).

        Rows that differ nearly always do so in their first or last column. Two float32 are 64 bits,
        one number to sort by.
        """
        ends = np.frombuffer(bits(rows[:, [0, -1]]), np.uint64)
        every = np.arange(len(rows))
        first = first_equal(rows, every, ends)
        if (first == every).all():
            return cls(rows, first)
        kept, number = np.unique(first, return_inverse=True)
        return cls(rows[kept], number)


def first_equal(rows: Any, chosen: np.ndarray, prints: np.ndarray) -> np.ndarray:
    """Return int64 (N,): the first of the ``chosen`` rows (N, D) that equals each of them.

    Equal rows have equal ``prints`` (N,). Only rows whose prints are equal are compared whole, in
    the type they are stored in.
    """
    first = np.arange(len(prints))
    _, index, counts = np.unique(prints[chosen], return_inverse=True, return_counts=True)
    known: dict[bytes, np.ndarray] = {}
    for row in chosen[counts[index] > 1, None]:  # an array of one number
        first[row] = known.setdefault(bits(rows[row]), row)
    return first


def bits(values: np.ndarray) -> bytes:
    """Return bytes that are equal for equal values; adding 0 turns -0.0 into 0.0."""
    return (values + np.float32(0)).tobytes()


class EmbeddedSet(NamedTuple):
    """Unit ``items`` (N, D) with ``classes`` int64 (N,) that both sets number alike."""

    items: DistinctRows
    classes: np.ndarray


def embedded_sets(
    query: np.ndarray,
    query_labels: np.ndarray,
    gallery: np.ndarray | None = None,
    gallery_labels: np.ndarray | None = None,
) -> tuple[EmbeddedSet, EmbeddedSet]:
    """Return query and gallery; without a gallery both are the same.

    Raise DataError for shapes that do not belong together, and for labels that are neither whole
    numbers nor text.
    """
    rows, items = unit_sets(query, gallery)
    known: dict[Any, int] = {}
    queries = EmbeddedSet(DistinctRows.of(rows), numbered("query", rows, query_labels, known))
    check_both("gallery and gallery_labels", gallery, gallery_labels)
    if gallery is None:
        return queries, queries
    classes = numbered("gallery", items, gallery_labels, known)
    return queries, EmbeddedSet(DistinctRows.of(items), classes)


def check_both(names: str, first: Any, second: Any) -> None:
    """Raise DataError if one of two arguments is given without the other."""
    if (first is None) != (second is None):
        shapes = [None if rows is None else np.shape(rows) for rows in (first, second)]
        raise DataError(f"{names} have shapes {shapes}; give both or neither")


def checked_depths(given: Any, name: str = "recall_at") -> list[int]:
    """Return the K of an argument; raise DataError unless these are whole numbers from 1."""
    depths = np.asarray(given)
    is_whole = not depths.size or (depths.dtype.kind in "iu" and depths.min() >= 1)
    if depths.ndim != 1 or not is_whole:
        raise DataError(f"{name} is {given!r}; a list of whole numbers from 1 is needed")
    return depths.tolist()


def listed(labels: Any) -> np.ndarray:
    """Return labels as an array in which numbers beside texts stay numbers."""
    if hasattr(labels, "detach"):  # a tensor
        labels = labels.detach().cpu().numpy()
    return np.array(labels, dtype=object if isinstance(labels, (list, tuple)) else None)


def numbered(name: str, rows: Any, labels: Any, known: dict[Any, int]) -> np.ndarray:
    """Return the number int64 (N,) of each row's label; ``known`` are those numbered so far.

    Python compares labels, because numpy rounds large numbers to compare them.
    """
    given = listed(labels)
    if given.shape != rows.shape[:1]:
        raise DataError(
            f"{name}: labels of shape {given.shape} for embeddings of shape {rows.shape}; each row "
            "needs one label; sets of labels need label_sets (--label-sets)"
        )
    values = given.tolist()
    for row, label in enumerate(values):
        is_whole = isinstance(label, Real) and label % 1 == 0
        if not is_whole and not isinstance(label, (str, bytes)):
            raise DataError(
                f"{name}: the label of row {row} is {label!r:.80}; a label is a whole number or a "
                "text. Leave out rows without one: embeddings[known], labels[known]"
            )
    numbers = [known.setdefault(label, len(known)) for label in values]
    if len({isinstance(label, Real) or type(label) for label in known}) > 1:
        raise DataError(f"{name}: some labels are numbers and some text, which are never equal")
    return np.array(numbers, dtype=np.int64)


def unit_sets(query: np.ndarray, gallery: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return unit rows of query (Q, D) and gallery (G, D); without a gallery, the query twice."""
    rows = unit_rows(query)
    items = rows if gallery is None else unit_rows(gallery)
    if rows.shape[1] != items.shape[1]:
        raise DataError(f"embeddings of shapes {rows.shape} and {items.shape} differ in width")
    return rows, items


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Return float32 (N, D) rows of unit length; a row of zeros stays: it is like nothing.

    Raise DataError for rows that are not finite, which no other item would outrank.
    """
    values = np.asarray(values)
    if values.ndim != 2 or not values.size:
        raise DataError(f"embeddings have shape {values.shape}; (N, D) is needed, both at least 1")
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(values, dtype=np.float32)
        norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    odd = np.flatnonzero(~((norms > SHORT) & (norms < LONG)))
    if len(odd):
        exact = values[odd].astype(np.float64)
        if not np.isfinite(exact).all():
            raise DataError("some embeddings are not finite; the model has diverged")
        largest = np.abs(exact).max(axis=1)
        _, exponents = np.frexp(largest)
        # powers of two change no digit
        scaled = np.ldexp(exact, -exponents[:, None]).astype(np.float32)
        rows = rows.copy()
        rows[odd] = scaled
        norms[odd] = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))
    if np.abs(norms - 1).max(initial=0.0) <= UNIT_TOLERANCE:
        return rows
    return rows / np.where(norms > 0, norms, 1)[:, None]


def similarities(rows: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the scores float32 (Q, N) of unit rows (Q, D) with unit rows (N, D)."""
    query = DistinctRows.of(rows)
    gallery = DistinctRows.of(items)
    products = query.rows @ gallery.rows.T
    return products[query.number].take(gallery.number, axis=1)
