"""MATLAB files: variables of numbers, cells of text and arrays of structs, as flat arrays."""

from pathlib import Path
from typing import Any

import numpy as np

LARGEST_WHOLE = 2**53  # beyond it, float64 skips numbers


def read_matlab(path: Path, *names: str) -> list[Any]:
    """Return the named variables, squeezed to arrays (N,): of numbers, text, or structs.

    Raise KeyError for a variable that is missing; a damaged file fails in any way.
    """
    from scipy.io import loadmat

    content = loadmat(path, squeeze_me=True, variable_names=names)
    return [np.atleast_1d(content[name]) for name in names]


def whole_numbers(values: Any) -> np.ndarray:
    """Return int64 (N,) of values that are whole, however stored; raise ValueError for others."""
    array = np.array(list(values), dtype=np.float64)
    if not ((np.abs(array) < LARGEST_WHOLE) & (np.floor(array) == array)).all():
        raise ValueError("its numbers are not whole ones")
    return array.astype(np.int64)


def texts(values: Any) -> list[str]:
    """Return the texts of a cell; raise ValueError for other values."""
    if not all(isinstance(value, str) for value in values):
        raise ValueError("its names are no texts")
    return [str(value) for value in values]
