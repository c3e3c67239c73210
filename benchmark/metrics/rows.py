"""Rows of embeddings, in memory or mapped from a file, made ready one block at a time."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.metrics.sets import (
    UNIT_TOLERANCE,
    DistinctRows,
    EmbeddedSet,
    first_equal,
    unit_rows,
)

SINGLE = np.dtype(np.float32)
BLOCK = 16_384  # rows that are read at a time
IN_MEMORY = 2**29  # bytes of float32 rows; a larger set is read again for each block of queries
PLACES = 100  # of a ranking, where equal scores are looked for
STEPS = 4096  # most multiples in a scaled code; all floats are multiples of some tiny number


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


class Space(NamedTuple):
    """How rows enter products, and the protocols that rank by these.

    names   the ends of their names: "" for cosine similarity, "_euclidean", "_hamming"
    unit    a float that rows are divided by; None: they get length 1
    dtype   of rows and scores
    centre  what is taken off then
    """

    names: list[str]
    unit: Any = None
    dtype: np.dtype[Any] = SINGLE
    centre: Any = 0

    def ready(self, rows: Array) -> Array:
        """Return rows as they enter the products."""
        if self.unit is None:
            return unit_rows(rows)
        return (rows / self.unit).astype(self.dtype, copy=False) - self.centre


class EmbeddedRows:
    """The distinct ones among chosen rows of embeddings (N, D), ready for products.

    alike   {likeness: int64 (N,)}: rows with equal numbers are alike in class (""), in class and
            camera ("camera"), in category ("category"), or in all ("itself")
    chosen  int64 (M,): which rows
    score   returns the scores of queries in their second argument; None: products of rows
    """

    def __init__(
        self,
        embeddings: Any,
        alike: Mapping[str, Array],
        chosen: Array,
        space: Space,
    ):
        self.embeddings = embeddings
        self.alike = {likeness: numbers[chosen] for likeness, numbers in alike.items()}
        self.space = space
        self.dtype = space.dtype
        same = self.alike["itself"]
        _, first, index = np.unique(same, return_index=True, return_inverse=True)
        kept, self.number = np.unique(first[index], return_inverse=True)
        self.numbers = chosen[kept]
        self.tied: list[bool] = []
        self.kept = None
        self.score: Callable[[Array, Array], Array] | None = None
        if self.dtype.itemsize * len(kept) * embeddings.shape[1] <= IN_MEMORY:
            self.kept = space.ready(embeddings[self.numbers])

    def like(self, likeness: str) -> EmbeddedSet:
        """Return the rows with the numbers of a likeness in place of classes."""
        rows: Any = self
        return EmbeddedSet(DistinctRows(rows, self.number), self.alike[likeness])

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, chosen: slice) -> Array:
        if self.kept is None:
            return self.space.ready(self.embeddings[self.numbers[chosen]])
        return self.kept[chosen]


def blocks(count: int) -> list[slice]:
    """Return slices of at most ``BLOCK`` rows that together are ``count`` rows."""
    return [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]


def products(
    queries: Array,
    items: EmbeddedRows,
    out: Array,
) -> Array:
    """Return the scores of queries (Q, D) in ``out`` (Q, U): larger is nearer."""
    if items.score:
        return items.score(queries, out)
    columns = [slice(None)]
    if items.kept is None:
        columns = blocks(len(items))
    for chosen in columns:
        block = items[chosen]
        np.matmul(queries, block.T, out=out[:, chosen])
        if items.space.unit is not None:  # x.y - |y|^2 / 2 orders as distances do
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


def common_step(
    values: Array,
    step: float,
    least: float,
) -> float:
    """Return the largest number of which ``step`` and all values are whole multiples.

    Euclid's algorithm, which floats do without rounding; 0.0 for a number below ``least``.
    """
    rest = np.append(values, step)
    while len(rest := np.abs(rest[rest != 0])) > 1:
        step = rest.min()
        if step < least:
            return 0.0
        rest = np.append(np.fmod(rest, step), step)
    return step


def examine(
    embeddings: Any,
    kept: Array,
    classes: Array,
    names: Any,
) -> tuple[dict[str, Any], Array, list[Space]]:
    """Return facts about the rows ``kept``, the first row equal to each, and the spaces they are
    ranked in, of cosine similarity first.

    classes  int64 (N,); below 0: none. Raise DataError for rows that are not finite.
    """
    kind = np.result_type(embeddings.dtype, SINGLE)
    tops = np.empty(len(kept))
    prints = np.empty(len(classes), np.uint64)
    words = embeddings.shape[1] * kind.itemsize // 4
    weights = np.random.default_rng(0).integers(2**63, size=words, dtype=np.uint64)
    for chosen in blocks(len(kept)):
        block = embeddings[kept[chosen]] + kind.type(0)  # -0.0 equals 0.0
        tops[chosen] = np.abs(block).max(axis=1)
        prints[kept[chosen]] = np.einsum("nd,d->n", block.view(np.uint32), weights)
    broken = kept[~np.isfinite(tops)]
    if len(broken):
        raise DataError(
            f"embeddings: {len(broken)} rows are not finite, from row {broken[0]} (the first is 0) "
            "on; leave them out"
        )
    same = first_equal(embeddings, kept, prints)
    again = kept[same[kept] != kept]
    relabelled = classes[again] != classes[same[again]]
    of_kept = classes[kept]
    sizes = np.unique(of_kept[of_kept >= 0], return_counts=True)[1]
    lengths, spaces = spaces_of(embeddings, kept, tops.max())
    facts = {
        "rows": len(kept),
        "rows that are not finite": 0,
        "classes": len(sizes),
        "classes with one row": int((sizes == 1).sum()),
        "rows equal to an earlier one": len(again),
        "the first of them": np.asarray(names)[again[:5]].tolist(),
        "of them with another label": int(relabelled.sum()),
        "smallest, median, largest length": [
            float(f"{length:.5g}") for length in np.quantile(lengths, [0, 0.5, 1])
        ],
    }
    return facts, same, spaces


def spaces_of(
    embeddings: Any,
    kept: Array,
    top: float,
) -> tuple[Array, list[Space]]:
    """Return the lengths (K,) of the rows ``kept``, and the spaces they are ranked in.

    ``top`` is the largest absolute value. Rows of whole numbers, or of whole multiples of one
    number, have exact scores where the sums fit into a float: as cosine similarity only if all have
    one length, so that none is divided by its own.
    """
    kind = np.result_type(embeddings.dtype, SINGLE)
    unit = kind.type(np.ldexp(1.0, np.frexp(top)[1] - 1))  # powers of two change no digit
    step = largest = top / unit
    least = largest / max(top, STEPS)  # whole numbers have any number of steps
    squares = np.empty(len(kept))
    total = np.zeros(embeddings.shape[1])
    for chosen in blocks(len(kept)):
        block = embeddings[kept[chosen]] / unit
        squares[chosen] = np.einsum("nd,nd->n", block, block, dtype=float)
        total += block.sum(axis=0, dtype=float)
        for part in (block[:1], block):  # a row shows most sets that have no step
            step = step and common_step(part, step, least)
    lengths = np.sqrt(squares) * unit
    names = []
    if np.abs(lengths - 1).max() > max(UNIT_TOLERANCE, np.finfo(embeddings.dtype).eps):
        names.append("_euclidean")
    space = Space(names, unit, centre=(total / len(kept)).astype(SINGLE))
    squares = np.rint(squares / (step or 1) ** 2)
    sums = 3 * squares.max()  # bounds twice the scores, which have halves
    if step and sums < 2**53:
        ones = squares.sum()  # of a code
        if step == largest and ones in (np.rint(total.sum() / step), len(kept) * len(total)):
            names.append("_hamming")
        space = Space(names, step * unit, SINGLE if sums < 2**24 else np.dtype(float))
        if squares.min() == squares.max():
            names.insert(0, "")
    spaces = [space] if names else []
    if "" not in names:
        spaces.insert(0, Space([""]))
    return lengths, spaces
