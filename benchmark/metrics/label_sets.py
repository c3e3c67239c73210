"""Labels that are sets: each row has some of several labels."""

from math import trunc
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.metrics.sets import listed, numbered

BETWEEN = "|"  # labels of a text


def numbered_sets(embeddings: Any, labels: Any) -> tuple[Array, sparse.csr_array]:
    """Return the number int64 (N,) of each row's set, and the sets as a matrix (N, C) of 0 and 1.

    ``labels`` are such a matrix, or (N,) texts and whole numbers: a text has the labels between its
    strokes, a number is one label. Raise DataError for any other, and for a row without a label.
    """
    given = listed(labels)
    sets: list[frozenset[Any]]
    if given.ndim == 2 and len(given) == embeddings.shape[0]:
        odd = np.argwhere((given != 0) & (given != 1))
        if len(odd):
            row, column = odd[0].tolist()
            raise DataError(
                f"labels: row {row} (the first is 0) has {given[row, column]!s:.80} in column "
                f"{column}; a matrix of sets has 1 for a label of the row, else 0"
            )
        sets = [frozenset(np.flatnonzero(row).tolist()) for row in given]
        width = given.shape[1]
    else:
        values = [  # a cell of a table is a number where all cells of its column are
            str(trunc(value)) if isinstance(value, Real) and value % 1 == 0 else value
            for value in given.tolist()
        ]
        numbered("labels", embeddings, values, {})
        known: dict[str, int] = {}
        sets = []
        for value in values:
            parts = [part.strip() for part in str(value).split(BETWEEN)]
            numbers = [known.setdefault(part, len(known)) for part in parts]
            sets.append(frozenset(numbers if all(parts) else []))
        width = len(known)
    empty = [row for row, members in enumerate(sets) if not members]
    if empty:
        first = empty[0]
        raise DataError(
            f"labels: {len(empty):,} rows have no label, or an empty one, from row {first} (the "
            f"first is 0), {given.tolist()[first]!r:.80}, on; leave them out"
        )
    first_with: dict[frozenset[Any], int] = {}
    of_row = np.array([first_with.setdefault(members, len(first_with)) for members in sets])
    sizes = [len(members) for members in sets]
    columns = np.array([column for members in sets for column in sorted(members)])
    ends = np.cumsum([0, *sizes])
    ones = np.ones(len(columns), np.int32)
    return of_row, sparse.csr_array((ones, columns, ends), shape=(len(sets), width))
