"""MATLAB 5 files (``-v6``, ``-v7``) in plain Python: numbers, cells of text, arrays of structs.

scipy.io.loadmat trusts the sizes in a file, and a damaged one can end the whole process.
"""

import itertools
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.paths import read_regular

MAX_BYTES = 200_000_000  # of a variable when decompressed
HEADER = 128
MATRIX, COMPRESSED = 14, 15  # types of data elements
CELL, STRUCT, CHAR = 1, 2, 4  # classes of arrays
NUMERIC = range(6, 16)  # double, single, and whole numbers of 8 to 64 bits
COMPLEX = 0x800  # a flag beside the class
DTYPES = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"},
    **{12: "i8", 13: "u8"},
}
BYTE_ORDERS = {"<": "le", ">": "be"}

MOST_NUMBER = 10**9  # of a class or cluster
Value = np.ndarray | list[str] | dict[str, list[Any]]


def read_matlab(path: Path, names: Collection[str]) -> dict[str, Value]:
    """Return the named variables: flat arrays, cells of text as lists, structs field by field.

    Raise ValueError for a variable that is missing; a damaged file fails in any way.
    """
    content = read_regular(path)
    order = {b"IM": "<", b"MI": ">"}.get(content[HEADER - 2 : HEADER])
    if order is None:
        raise ValueError("it is not a MATLAB 5 file")
    variables = {}
    for kind, data in _elements(content[HEADER:], order):
        if kind == COMPRESSED:
            kind, data = next(_elements(zlib.decompressobj().decompress(data, MAX_BYTES), order))
        if kind == MATRIX:
            name, value = _variable(data, order, names)
            if value is not None:
                variables[name] = value
    if missing := set(names) - set(variables):
        raise ValueError(f"it has no {', '.join(sorted(missing))}")
    return variables


def whole_numbers(values: Any) -> np.ndarray:
    """Return int64 (N,) of values that are whole, however stored; raise ValueError for others."""
    array = np.asarray(values)
    sound = array.dtype.kind in "iuf" and np.isfinite(array).all()
    if not sound or (np.abs(array) > MOST_NUMBER).any() or (array % 1).any():
        raise ValueError("its numbers are not whole ones")
    return array.astype(np.int64)


def texts(value: Value) -> list[str]:
    """Return the texts of a cell; raise ValueError for another variable."""
    if not isinstance(value, list):
        raise ValueError("its names are no texts")
    return value


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield (type, data) of data elements that follow each other."""
    at = 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        if kind >> 16:  # up to four bytes in the tag itself
            kind, size = kind & 0xFFFF, kind >> 16
            start, end = at + 4, at + 8
        else:
            start, end = at + 8, at + 8 + size
            if kind != COMPRESSED:
                end += -size % 8
        if not kind:  # zeros without end are as many elements
            raise ValueError("it has elements without a type")
        if start + size > len(content):
            raise ValueError("it is cut off")
        yield kind, content[start : start + size]
        at = end


def _variable(data: bytes, order: str, names: Collection[str]) -> tuple[str, Value | None]:
    """Return (name, value) of an array; None for the value of one that is not asked for."""
    elements = _elements(data, order)
    flags, _, (_, name) = next(elements), next(elements), next(elements)  # between: dimensions
    text = name.decode("ascii")
    if text not in names:
        return text, None
    kind = _array_class(flags, order)
    try:
        if kind == STRUCT:
            return text, _fields(elements, order)
        if kind != CELL:
            return text, _numbers(kind, next(elements), order)
        cells = [_content(cell, order) for _, cell in elements]
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    words = [cell for cell in cells if isinstance(cell, str)]
    if len(words) < len(cells):
        raise ValueError(f"{text} has a cell that is not text")
    return text, words


def _fields(elements: Iterator[tuple[int, bytes]], order: str) -> dict[str, list[Any]]:
    """Return {field: its value in each struct} of an array of structs."""
    (_, size), (_, names) = next(elements), next(elements)
    (length,) = struct.unpack(f"{order}i", size)
    parts = [names[at : at + length] for at in range(0, len(names), length)]
    fields: dict[str, list[Any]] = {part.split(b"\0")[0].decode("ascii"): [] for part in parts}
    for (_, cell), values in zip(elements, itertools.cycle(fields.values()), strict=False):
        values.append(_content(cell, order))
    return fields


def _content(cell: bytes, order: str) -> str | np.ndarray:
    """Return the text or the numbers (N,) in an array."""
    flags, _, _, *content = _elements(cell, order)  # between: dimensions, name
    array_class = _array_class(flags, order)
    if array_class != CHAR:
        return _numbers(array_class, content[0], order)
    kind, data = content[0]
    encoding = {2: "latin-1", 16: "utf-8"}.get(kind, f"utf-16-{BYTE_ORDERS[order]}")
    return data.decode(encoding)


def _array_class(flags: tuple[int, bytes], order: str) -> int:
    """Return the class of an array; that of complex numbers is none of those that are known."""
    return struct.unpack_from(f"{order}I", flags[1])[0] & (0xFF | COMPLEX)


def _numbers(array_class: int, element: tuple[int, bytes], order: str) -> np.ndarray:
    if array_class not in NUMERIC:
        raise ValueError("something else than real numbers stands where they are expected")
    kind, data = element
    return np.frombuffer(data, order + DTYPES[kind])
