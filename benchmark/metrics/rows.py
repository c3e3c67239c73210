"""Rows of embeddings, in memory or mapped from a file, made ready one block at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.metrics.sets import UNIT_TOLERANCE, DistinctRows, EmbeddedSet, unit_rows

BLOCK = 16_384  # rows that are read at a time
IN_MEMORY = 2**29  # bytes of float32 rows; a larger set is read again for each block of queries
PLACES = 100  # of a ranking, where equal scores are looked for


class Joined:
    """The rows of one array (N, D), followed by the rows of another array."""

    def __init__(
        self,
        first: Any,
        second: Any,
    ):
        self.arrays = (first, second)
        self.shape = (len(first) + len(second), first.shape[1])
        self.dtype = np.result_type(first.dtype, second.dtype)

    def __getitem__(self, numbers: Array) -> Array:
        first, second = self.arrays
        rows = np.empty((len(numbers), self.shape[1]), self.dtype)
        behind = numbers >= len(first)
        rows[~behind] = first[numbers[~behind]]
        rows[behind] = second[numbers[behind] - len(first)]
        return rows


class EmbeddedRows:
    """The distinct ones among chosen rows of embeddings (N, D), float32, ready for products.

    alike   {likeness: int64 (N,)}: rows with equal numbers are alike in class (""), in class and
            camera ("camera"), in category ("category"), or in all ("itself")
    chosen  int64 (M,): which rows
    centre  what is taken off for Euclidean distances; None: rows have length 1
    """

    def __init__(
        self,
        embeddings: Any,
        alike: Mapping[str, Array],
        chosen: Array,
        centre: Any = None,
    ):
        self.embeddings = embeddings
        self.alike = {likeness: numbers[chosen] for likeness, numbers in alike.items()}
        self.centre = centre
        same = self.alike["itself"]
        _, first, index = np.unique(same, return_index=True, return_inverse=True)
        kept, self.number = np.unique(first[index], return_inverse=True)
        self.numbers = chosen[kept]
        self.tied: list[bool] = []
        self.kept = None
        width = embeddings.shape[1]
        if 4 * len(kept) * width <= IN_MEMORY:
            self.kept = self.ready(self.numbers)

    def like(self, likeness: str) -> EmbeddedSet:
        """Return the rows with the numbers of a likeness in place of classes."""
        rows: Any = self
        return EmbeddedSet(DistinctRows(rows, self.number), self.alike[likeness])

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, chosen: slice) -> Array:
        if self.kept is None:
            return self.ready(self.numbers[chosen])
        return self.kept[chosen]

    def ready(self, numbers: Array) -> Array:
        """Return rows as they enter the products."""
        rows = self.embeddings[numbers]
        if self.centre is None:
            return unit_rows(rows)
        return rows.astype(np.float32) - self.centre


def blocks(count: int) -> list[slice]:
    """Return slices of at most ``BLOCK`` rows that together are ``count`` rows."""
    return [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]


def products(
    queries: Array,
    items: EmbeddedRows,
    out: Array,
) -> Array:
    """Return the scores of queries (Q, D) in ``out`` (Q, U): larger is nearer."""
    columns = [slice(None)]
    if items.kept is None:
        columns = blocks(len(items))
    for chosen in columns:
        block = items[chosen]
        np.matmul(queries, block.T, out=out[:, chosen])
        if items.centre is not None:  # x.y - |y|^2 / 2 orders as distances do
            out[:, chosen] -= np.square(block).sum(axis=1) / 2
    return out


def watched(
    queries: Array,
    items: EmbeddedRows,
    out: Array,
) -> Array:
    """Return the scores as ``products`` does, and add to ``items.tied`` for some of the queries.

    What is added says whether different rows tie in the first ``PLACES`` of the query's ranking.
    """
    step = max(1, min(50, len(queries) // 8))
    scores = products(queries, items, out)
    first = np.sort(scores[::step], axis=1)[:, -PLACES:]
    tied = np.diff(first) == 0
    items.tied += tied.any(axis=1).tolist()
    return scores


def examine(
    embeddings: Any,
    classes: Array,
    names: Any,
) -> tuple[dict[str, Any], Array, Array | None]:
    """Return facts about rows (N, D), the first row equal to each, int64 (N,), and the centre (D,).

    The centre is None if all rows have length 1. Raise DataError for rows that are not finite.
    """
    every = np.arange(len(classes))
    lengths = np.empty(len(every))
    prints = np.empty(len(every), np.uint64)  # equal rows have equal numbers
    width = embeddings.shape[1]
    total = np.zeros(width)
    weights = np.random.default_rng(0).integers(2**63, size=width, dtype=np.uint64)
    for chosen in blocks(len(every)):
        block = embeddings[every[chosen]].astype(np.float32)
        block += 0  # -0.0 equals 0.0
        squares = np.einsum("nd,nd->n", block, block, dtype=float)
        lengths[chosen] = np.sqrt(squares)
        total += block.sum(axis=0, dtype=float)
        prints[chosen] = np.einsum("nd,d->n", block.view(np.uint32), weights)
    broken = np.flatnonzero(~np.isfinite(lengths))
    if len(broken):
        raise DataError(
            f"embeddings: {len(broken)} rows are not finite, from row {broken[0]} (the first is 0) "
            "on; leave them out"
        )
    _, first, index = np.unique(prints, return_index=True, return_inverse=True)
    same = first[index]
    again = np.flatnonzero(same != every)
    earlier = same[again]
    other = classes[again] != classes[earlier]
    sizes = np.unique(classes, return_counts=True)[1]
    shown = np.quantile(lengths, [0, 0.5, 1]).round(4)
    facts = {
        "rows": len(every),
        "rows that are not finite": 0,
        "classes": len(sizes),
        "classes with one row": int((sizes == 1).sum()),
        "rows equal to an earlier one": len(again),
        "the first of them": np.asarray(names)[again[:5]].tolist(),
        "of them with another label": int(other.sum()),
        "smallest, median, largest length": shown.tolist(),
    }
    rounding = max(UNIT_TOLERANCE, np.finfo(embeddings.dtype).eps)
    if np.abs(lengths - 1).max() <= rounding:
        return facts, same, None
    mean = total / len(every)
    return facts, same, mean.astype(np.float32)
