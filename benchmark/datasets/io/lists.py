"""Files that list images: lines of fields, tables, MATLAB and pickles of plain data.

A pickle can name any function. Here it reaches only what numbers and text are written with, and
never numpy.dtype itself, whose state could turn bytes of the file into pointers.
"""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.documents import whole_number
from benchmark.core.files import check_regular
from benchmark.core.paths import leaves_root
from benchmark.datasets.base import Findings

LARGEST = 2**53  # beyond it, float64 skips numbers


def read_rows(
    findings: Findings,
    file: str,
    columns: Sequence[str],
    *,
    header: str | None = None,
    skip: int = 0,
    once: str | None = None,
    whole: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a list below the root as text columns; blanks separate the fields.

    skip    lines that are passed over at the beginning
    header  fields of the next line, if it is a header
    once    column whose values must differ
    whole   column of whole numbers (int64)

    Empty lines do not count. What is wrong goes into the findings: an unreadable or empty file,
    another header, lines with more or fewer fields, and wrong values of ``once``, ``whole`` and
    ``path``, which must not leave the root.
    """
    try:
        lines = (findings.root / file).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        findings.add("unreadable", f"cannot read {file}: {error}; unpack it again", file)
        return pd.DataFrame(columns=list(columns), dtype=object)
    if header is not None:
        first = " ".join(" ".join(lines[skip : skip + 1]).split())
        if first != header:
            message = f"{file}: line {skip + 1} is {first!r:.80}; expected the header {header!r}"
            findings.add("other_header", message, file)
        skip += 1
    path_at = columns.index("path") if "path" in columns else None
    whole_at = columns.index(whole) if whole else None
    flat: list[str] = []  # one list of all fields: a list per row costs more than reading the file
    malformed = []
    for number, line in enumerate(lines[skip:], start=skip + 1):
        fields = line.split(None, len(columns))  # one too many is enough to see
        if (
            len(fields) == len(columns)
            and (path_at is None or not leaves_root(fields[path_at]))
            and (whole_at is None or whole_number(fields[whole_at]) is not None)
        ):
            flat += fields
        elif fields:
            malformed.append(f"line {number}: {line[:100]!r}")
    advice = f"each must read {' '.join(f'<{column}>' for column in columns)}"
    if path_at is not None:
        advice += ", with paths below the root"
    if whole:
        advice += f"; {whole} must be a whole number"
    findings.add_all("malformed_line", "malformed lines", malformed, advice, file)
    if not flat and not malformed:
        findings.add("empty_list", f"{file} lists nothing; unpack it again", file)
    texts = {column: flat[at :: len(columns)] for at, column in enumerate(columns)}
    table = pd.DataFrame(texts, dtype=object)
    if whole:
        table[whole] = table[whole].astype("int64")
    if once:
        twice = table[once][table[once].duplicated()]
        findings.add_all("given_twice", f"{once}s given twice", twice, "each must stand once", file)
    return table


def read_table(
    findings: Findings, file: str, texts: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """Return columns of a table below the root: ``texts`` as text, ``numbers`` as float64.

    Other columns are passed over. What is wrong goes into the findings: an unreadable or empty
    file, columns that are missing, rows without a text or with something else than a number.
    """
    wanted = [*texts, *numbers]
    try:
        table = pd.read_csv(
            findings.root / file, dtype=str, usecols=wanted, skipinitialspace=True, index_col=False
        )[wanted]
        if not len(table):
            raise ValueError("it lists nothing")
    except (OSError, ValueError) as error:  # pandas raises ValueError for any other table
        message = f"cannot read {file}: {error}; get it from its publishers again"
        findings.add("unreadable", message, file)
        return pd.DataFrame({name: np.empty(0, object) for name in wanted})
    values = table[list(numbers)].apply(pd.to_numeric, errors="coerce")
    # a comparison with NaN is false
    wrong = table[list(texts)].isna().any(axis=1) | ~(values.abs() < LARGEST).all(axis=1)
    lines = [f"line {number + 2}" for number in np.flatnonzero(wrong)]
    advice = f"each must have {', '.join(wanted)}, the last {len(numbers)} as numbers"
    findings.add_all("malformed_line", "malformed lines", lines, advice, file)
    return pd.concat([table[list(texts)].astype(object), values], axis=1)[~wrong]


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
    if not ((np.abs(array) < LARGEST) & (np.floor(array) == array)).all():
        raise ValueError("its numbers are not whole ones")
    return array.astype(np.int64)


def texts(values: Any) -> list[str]:
    """Return the texts of a cell; raise ValueError for other values."""
    if not all(isinstance(value, str) for value in values):
        raise ValueError("its names are not text")
    return [str(value) for value in values]


MOST_VALUES = 5_000_000  # shared parts count wherever they appear


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
        order = "F" if fortran else "C"
        self.extend(_values(content, dtype, shape, order).tolist())


def _values(content: Any, dtype: _Dtype, shape: Any, order: Any = "C") -> np.ndarray:
    if isinstance(content, str):
        content = content.encode("latin1")
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


# the one in C makes room for whatever number a remembered object is given
class _PlainUnpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, and could run code")
        return _ALLOWED[f"{module}.{name}"]


def read_plain_pickle(path: Path) -> Any:
    """Return what a pickle file holds; text of Python 2 is read as latin-1.

    Raise UnpicklingError for anything but lists, tuples, dicts, sets, numbers, text, bytes and
    plain numpy arrays, DataError for what is no regular file; a damaged file fails in any way.
    """
    check_regular(path)
    with open(path, "rb") as file:
        content = _PlainUnpickler(file, encoding="latin1").load()
    rest = [content]
    count = 0
    while rest:
        value = rest.pop()
        count += 1
        if isinstance(value, dict):
            rest += value.items()
        elif isinstance(value, (list, tuple, set)):
            rest += value
        if count + len(rest) > MOST_VALUES:
            raise pickle.UnpicklingError(f"it has more than {MOST_VALUES:,} values")
    return content
