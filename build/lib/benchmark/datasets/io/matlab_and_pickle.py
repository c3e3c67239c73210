"""MATLAB and pickle files of plain data; a pickle that names a function is refused.

A pickle can name any function. Here it reaches only what numbers and text are written with, and
never numpy.dtype itself, whose state could turn bytes of the file into pointers.
"""

import pickle
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
        raise ValueError("its names are not text")
    return [str(value) for value in values]


class _Dtype:
    """Stands for numpy.dtype: a type code and a byte order."""

    def __init__(self, code: str, *_: object):
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array(list[Any]):
    """Stands for numpy.ndarray: a list, empty until its state is set."""

    def __init__(self, *_: object):
        super().__init__()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, content = state
        self.extend(_values(content, dtype, shape, "F" if fortran else "C").tolist())


def _values(content: Any, dtype: _Dtype, shape: Any, order: Any = "C") -> np.ndarray:
    content = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(content, dtype.dtype).reshape(shape, order=order)


_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": lambda text, _: text.encode("latin1"),  # bytes, in protocols before 3
}
for _module in ("builtins", "__builtin__"):  # the name in Python 3 and 2
    _ALLOWED |= {f"{_module}.set": set, f"{_module}.bytes": lambda: b""}
for _core in ("numpy.core", "numpy._core"):  # the name before numpy 2, and since
    _ALLOWED |= {
        f"{_core}.multiarray._reconstruct": _Array,
        f"{_core}.multiarray.scalar": lambda dtype, content: _values(content, dtype, ())[()],
        f"{_core}.numeric._frombuffer": lambda *state: _values(*state).tolist(),
    }


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, and could run code")
        return _ALLOWED[f"{module}.{name}"]


def read_plain_pickle(path: Path) -> Any:
    """Return what a pickle file holds; text of Python 2 is read as latin-1.

    Raise UnpicklingError for anything but lists, tuples, dicts, sets, numbers, text, bytes and
    plain numpy arrays; a damaged file fails in any way.
    """
    with open(path, "rb") as file:
        return _PlainUnpickler(file, encoding="latin1").load()
