"""What callers hand to ``score``: checked, and roles as numbers of rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.core.errors import DataError, failing
from benchmark.core.results import Array

TYPES = ("float16", "float32", "float64")
MAX_THREADS = 1_000
WORDS = {"true": True, "false": False}


def check_embeddings(embeddings: Any) -> None:
    """Raise DataError unless embeddings are an array (N, D) of floats, both at least 1."""
    kind = getattr(embeddings, "dtype", type(embeddings).__name__)
    kind = getattr(kind, "name", kind)  # big-endian numbers have the name, too
    shape = tuple(getattr(embeddings, "shape", ()))
    if kind not in TYPES or len(shape) != 2 or 0 in shape:
        raise DataError(
            f"embeddings are {kind} {shape}; allowed: {', '.join(TYPES)} (rows, dimensions), an "
            "array with at least one of both; codes: embeddings.astype('float32'), unpacked before"
        )


def check_plain(arguments: Mapping[str, Any]) -> None:
    """Raise DataError for arrays whose mask would be lost, or that stay two-dimensional."""
    problems = [
        f"{name} are a numpy {type(values).__name__}; give a plain array: without the rows that "
        "are masked, by numpy.asarray(...)"
        for name, values in arguments.items()
        if isinstance(values, (np.matrix, np.ma.MaskedArray))
    ]
    if problems:
        raise DataError("; ".join(problems))


def check_others(
    count: int,
    labels: Any,
    names: Any,
    threads: Any,
) -> None:
    """Raise DataError for arguments that do not fit embeddings of ``count`` rows."""
    is_number = isinstance(threads, (int, np.integer)) and 1 <= threads <= MAX_THREADS
    problems = failing(
        (labels is None, "", "labels are None; give one a row, or a ground truth"),
        (names is not None and len(names) != count, "", f"names must be {count:,}, one a row"),
        (
            threads is not None and not is_number,
            "",
            f"threads is {threads!r}; allowed: 1 to {MAX_THREADS:,}",
        ),
    )
    if problems:
        raise DataError("; ".join(map(str, problems)))


def chosen(role: str, rows: Any, count: int) -> Array:
    """Return the numbers int64 of the rows, of ``count``, that have a role; else raise DataError.

    ``rows`` is a mask (count,) of bool, of 0 and 1, or of the texts true and false; or the numbers
    of the rows, each once.
    """
    given = np.asarray(rows, dtype=object)
    values = [WORDS.get(str(value).strip().lower(), value) for value in given.ravel().tolist()]
    array = np.array(values) if len(set(map(type, values))) == 1 else given
    kind = array.dtype.kind
    is_whole = kind in "iu"
    is_mask = kind in "biu" and len(values) == count and np.isin(array, [0, 1]).all()
    # a number that is too high or there twice is not found
    is_numbers = is_whole and np.isin(np.arange(count), array).sum() == len(values)
    numbers = np.flatnonzero(array) if is_mask else array
    if given.ndim != 1 or is_mask == is_numbers or not len(numbers):
        found = f"{values[:3]!r:.80} ..."
        if is_whole:
            found = f"whole numbers from {array.min()} to {array.max()}"
        raise DataError(
            f"{role} has shape {given.shape}, {found}, which is "
            f"{'both' if is_mask and is_numbers else 'none'} of: a mask of {count:,} times True or "
            f"False, or 1 or 0, with a True; numbers of rows from 0 to {count - 1:,}, each once"
        )
    return numbers
