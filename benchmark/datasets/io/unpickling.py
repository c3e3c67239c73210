"""Reads pickle files of plain data without running code: basic containers and numpy arrays only."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import multiarray, numeric

from benchmark.core.errors import DataError


def _latin1(text: str, encoding: str) -> bytes:
    """Returns bytes as Python 3 writes them into old pickle protocols."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text encoding {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Returns the empty bytes, which old protocols write as a call."""
    return b""


# numpy's modules were renamed from numpy.core to numpy._core in version 2; files hold either name
_NUMPY = {
    ("multiarray", "_reconstruct"): multiarray._reconstruct,
    ("multiarray", "scalar"): multiarray.scalar,
    ("numeric", "_frombuffer"): numeric._frombuffer,
}
_ALLOWED = {
    **{
        (f"numpy.{core}.{module}", name): value
        for core in ("core", "_core")
        for (module, name), value in _NUMPY.items()
    },
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
    **{(module, "set"): set for module in ("builtins", "__builtin__")},
    **{(module, "bytes"): _no_bytes for module in ("builtins", "__builtin__")},
}


class _RefusedError(Exception):
    """A pickle asks for something that is not plain data."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]


def read_plain_pickle(path: Path) -> Any:
    """Returns what a pickle file holds; text of Python 2 is read as latin-1.

    Raises DataError when the file cannot be read, is damaged, or holds anything but lists, tuples, dicts, sets,
    numbers, text, bytes and numpy arrays: a pickle of other things could run code.
    """
    try:
        with path.open("rb") as file:
            return _PlainUnpickler(file, encoding="latin1").load()
    except _RefusedError as error:
        raise DataError(
            f"{path} asks for {error}, and only lists, dicts, numbers, text and numpy arrays are read, since a "
            "pickle of anything else could run code; get the file from its publishers"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; unpack it again") from error
    except Exception as error:  # a damaged pickle fails in any way at all
        raise DataError(f"{path} is damaged or no pickle file ({error}); get it again") from error
