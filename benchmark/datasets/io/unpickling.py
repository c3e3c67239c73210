"""Pickle files of plain data, read without running code: containers, numbers, text, numpy arrays.

numpy.dtype itself must stay out of reach: a pickle may set its state, and a structured type with
an object field over raw bytes is a pointer of the file's choice. Stubs stand for numpy's objects.
Nothing nested may be hashed or written out: a tuple of 150 bytes can have 2^70 parts.
"""

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.paths import open_regular
from benchmark.core.pickles import KeyCheckingUnpickler, RefusedError, check_keys

MAX_BYTES = 8_000_000  # the published ground truths have less than 1 MB
MAX_VALUES = 500_000  # the published ones have some 10,000; shared parts count everywhere
MAX_DEPTH = 20
PLAIN_DTYPE = re.compile(r"[biufSU][1-9][0-9]{0,5}")  # bool, integers, floats, bytes, text


def _told(value: object) -> str:
    return f"{value[:40]!r}" if isinstance(value, str) else f"a {type(value).__name__}"


class _Dtype:
    """Stub of numpy.dtype: a plain type code and a byte order."""

    def __init__(self, code: object, *_: object):
        if not isinstance(code, str) or not PLAIN_DTYPE.fullmatch(code):
            raise RefusedError(f"arrays of type {_told(code)}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order, *structure = state[1:5]
        if order not in ("<", ">", "=", "|") or structure != [None, None, None]:
            raise RefusedError("arrays of a structured type")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stub of numpy.ndarray: empty until its state is set."""

    def __init__(self, *_: object):
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, content = state
        self.array = _array(content, dtype, shape, "F" if fortran else "C")


def _array(content: Any, dtype: Any, shape: Any, order: Any = "C") -> np.ndarray:
    if not isinstance(dtype, _Dtype):
        raise RefusedError(f"arrays of type {_told(dtype)}")
    if not isinstance(content, (str, bytes, bytearray)):
        raise RefusedError(f"an array whose content is {_told(content)}")
    content = content.encode("latin1") if isinstance(content, str) else bytes(content)
    array: np.ndarray = np.ndarray(shape, dtype.dtype, content, order=order)
    if array.nbytes != len(content) or array.shape != shape:
        raise ValueError(f"{len(content)} bytes for an array of shape {shape}")
    return array


def _scalar(dtype: Any, content: Any) -> Any:
    return _array(content, dtype, ())[()]


def _encode_latin1(text: str, encoding: str) -> bytes:
    """Return bytes as Python 3 writes them into old pickle protocols."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text encoding {_told(encoding)}")
    return text.encode("latin1")


def _set(*items: Any) -> set[Any]:
    """Return the set of the items of a list, as protocols before 4 write it."""
    found = [item for part in items for item in part]
    check_keys(found)
    return set(found)


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode_latin1,
}
for _module in ("builtins", "__builtin__"):
    _ALLOWED |= {(_module, "set"): _set, (_module, "bytes"): lambda: b""}
for _core in ("numpy.core", "numpy._core"):  # the name before numpy 2, and since
    _ALLOWED |= {
        (f"{_core}.multiarray", "_reconstruct"): _Array,
        (f"{_core}.multiarray", "scalar"): _scalar,
        (f"{_core}.numeric", "_frombuffer"): _array,
    }


class _PlainUnpickler(KeyCheckingUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise RefusedError(f"{module}.{name}")
        function = _ALLOWED[module, name]
        return lambda *arguments: function(*arguments)  # a new one: a pickle can set attributes


class _Plain:
    """Replaces the stubs in what was read, and refuses what is too large, deep or not plain."""

    def __init__(self) -> None:
        self.values = 0

    def of(self, value: Any, depth: int = 0) -> Any:
        value = value.array if isinstance(value, _Array) else value
        self.values += value.size if isinstance(value, np.ndarray) else 1
        if self.values > MAX_VALUES or depth > MAX_DEPTH:
            raise RefusedError(f"more than {MAX_VALUES:,} values or {MAX_DEPTH} levels of nesting")
        if isinstance(value, dict):
            return {
                self.of(key, depth + 1): self.of(part, depth + 1) for key, part in value.items()
            }
        if isinstance(value, (list, tuple, set)):
            return type(value)(self.of(part, depth + 1) for part in value)
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise RefusedError("integers of more than 64 bits")
        if value is not None and not isinstance(
            value, (int, float, str, bytes, np.ndarray, np.generic)
        ):
            raise RefusedError(f"a {type(value).__name__}")
        return value


def read_plain_pickle(path: Path) -> Any:
    """Return what a pickle file holds; text of Python 2 is read as latin-1.

    Raise DataError when the file cannot be read, is damaged or too large, or holds anything but
    lists, tuples, dicts, sets, numbers, text, bytes and plain numpy arrays: it could run code.
    """
    try:
        with open_regular(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise RefusedError(f"more than {MAX_BYTES:,} bytes")
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(content):
                raise RefusedError(f"a memory of {argument:,} entries")
            if opcode.name == "FRAME" and int(argument or 0) > len(content):
                raise pickle.UnpicklingError("a frame ends behind the file")
        return _Plain().of(_PlainUnpickler(io.BytesIO(content), encoding="latin1").load())
    except RefusedError as error:
        raise DataError(
            f"{path} holds {error}, but only lists, dicts, numbers, text and plain numpy arrays "
            "are read, because a pickle of anything else could run code; get it from its publishers"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; unpack it again") from error
    except Exception as error:  # a damaged pickle fails in any way
        raise DataError(f"{path} is damaged or no pickle ({error}); get it again") from error
