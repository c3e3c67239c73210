"""MATLAB 5 files (``-v6`` and ``-v7``): vectors of numbers and cells of text, read in plain Python.

scipy.io.loadmat trusts the sizes in a file, and a damaged one can end the whole process.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

MAX_BYTES = 200_000_000  # of a variable when decompressed
HEADER = 128
MATRIX, COMPRESSED = 14, 15  # types of data elements
CELL, CHAR = 1, 4  # classes of arrays
DTYPES = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"},
    **{12: "i8", 13: "u8"},
}
BYTE_ORDERS = {"<": "le", ">": "be"}


def read_matlab(path: Path, names: Collection[str]) -> dict[str, np.ndarray | list[str]]:
    """Return the named variables: numbers as flat arrays, cells of text as lists.

    Raise ValueError for a variable that is missing; a damaged file fails in any way.
    """
    content = path.read_bytes()
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
        if start + size > len(content):
            raise ValueError("it is cut off")
        yield kind, content[start : start + size]
        at = end


def _variable(
    data: bytes, order: str, names: Collection[str]
) -> tuple[str, np.ndarray | list[str] | None]:
    """Return (name, value) of an array; None for the value of one that is not asked for."""
    elements = _elements(data, order)
    flags, _, (_, name) = next(elements), next(elements), next(elements)  # between: dimensions
    text = name.decode("ascii")
    if text not in names:
        return text, None
    if _array_class(flags, order) != CELL:
        return text, _numbers(next(elements), order)
    cells = []
    for _, cell in elements:
        flags, _, _, content = _elements(cell, order)  # between: dimensions, name
        if _array_class(flags, order) != CHAR:
            raise ValueError(f"{text} has a cell that is not text")
        encoding = {2: "latin-1", 16: "utf-8"}.get(content[0], f"utf-16-{BYTE_ORDERS[order]}")
        cells.append(content[1].decode(encoding))
    return text, cells


def _array_class(flags: tuple[int, bytes], order: str) -> int:
    return struct.unpack_from(f"{order}I", flags[1])[0] & 0xFF


def _numbers(element: tuple[int, bytes], order: str) -> np.ndarray:
    kind, data = element
    return np.frombuffer(data, order + DTYPES[kind])
