"""CSV files with a header, as pandas reads them, but without guesses.

pandas takes the first fields of lines that are too long for an index, and whole columns for numbers
because they look so. Here no line is longer than the header, and every column has the type that it
is said to have. The fields that a shorter line lacks are missing.
"""

import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from benchmark.core.paths import MAX_TABLE, open_regular
from benchmark.core.results import MOST

EMPTY_IS_NAN = "float64"
MAX_AMOUNT = 10**15
MAX_HEADER = 100_000  # bytes
# Columns of the steps' tables that hold texts, whatever these look like: a dataset may be called
# 2011, a loss NA. Names are never missing; the other texts may be.
NAMES = (
    "dataset", "setting", "backbone", "loss", "base_loss", "against", "claim", "paper", "source",
    "table", "row_label",
)  # fmt: skip
TEXTS = (
    *NAMES, "split", "metric", "part", "stated_in", "sentence", "condition", "outside", "reason",
    "note",
)  # fmt: skip
# What their columns of numbers can hold: scores and p values, scores in percent, numbers of runs
# and the like, and spreads, times and memory.
SHARES = {
    "mean", "mean_against", "minimum", "maximum", "last", "best", "value", "value_against",
    "rate", "p",
}  # fmt: skip
PERCENTS = {"ours_mean", "reference_mean"}
COUNTS = {
    "n", "n_diverged", "n_ended", "n_absent", "ours_n", "reference_n", "paired_n", "runs",
    "queries", "classes", "datasets", "losses", "family_size",
}  # fmt: skip
AMOUNTS = {
    "sd", "last_sd", "best_sd", "ours_sd", "reference_sd", "sd_difference", "se", "epoch",
    "train_seconds", "images_per_second", "loss_ms", "loss_ms_minimum", "loss_ms_maximum",
    "peak_gpu_mb", "peak_rss_mb",
}  # fmt: skip


def read_csv(path: Path, columns: Sequence[str], numbers: Mapping[str, str]) -> pd.DataFrame:
    """Return the table in a file; columns that are not in ``numbers`` (int64 or float64) hold text.

    An empty field is "" in a column of text, NaN in one of float64, and an error in one of int64.
    Raise ValueError for columns that are missing or come twice, lines longer than the header and
    values that are no numbers; OSError when the file cannot be read.
    """
    with open_regular(path, MAX_TABLE) as stream:
        header = _header(stream)
        if missing := [name for name in columns if name not in header]:
            raise ValueError(f"it lacks the columns {', '.join(missing)}")
        try:
            return _read(
                stream,
                defaultdict(lambda: "object", numbers),
                [name for name, kind in numbers.items() if kind == EMPTY_IS_NAN],
            )
        except (OverflowError, TypeError) as error:
            raise ValueError(f"it has a value that is no number: {error}") from error


def guess_csv(path: Path) -> pd.DataFrame:
    """Return the table in a file that a step wrote, with pandas' guesses of types.

    ``TEXTS`` are texts, and an empty field of ``NAMES`` is "". Elsewhere it alone is a missing one.
    Raise ValueError when it is no table, has a column twice, lines longer than the header, a last
    line that is cut or a number that cannot be, OSError when it cannot be read.
    """
    with open_regular(path, MAX_TABLE) as stream:
        header = _header(stream)
        stream.seek(-1, os.SEEK_END)
        if stream.read() != b"\n":
            raise ValueError("its last line does not end: the file was cut")
        stream.seek(0)
        may_miss = [name for name in header if name not in NAMES]
        table = _read(stream, dict.fromkeys(TEXTS, "str"), may_miss)
    for name in header:
        if (range_ := _range(name)) is not None and not _lies_in(table[name], *range_):
            raise ValueError(f"a value of column {name} is not in [{range_[0]}, {range_[1]:g}]")
    return table


def _range(column: str) -> tuple[float, float] | None:
    """Return the least and the greatest value of a column that a step wrote, where it has them."""
    if column in SHARES or column.startswith("p_"):
        return 0, MOST
    if column in PERCENTS:
        return 0, 100 * MOST
    return (0, MAX_AMOUNT) if column in COUNTS | AMOUNTS else None


def _lies_in(values: "pd.Series[Any]", least: float, greatest: float) -> bool:
    """Say whether all values are numbers of a range, or missing: a cell may have no test."""
    kind = values.dtype
    if not values.size:
        return True
    if not pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return False
    return bool((values.isna() | values.between(least, greatest)).all())


def check_header(stream: BinaryIO) -> None:
    """Raise ValueError for a first line that is too long: pandas takes minutes for its columns."""
    if len(stream.readline(MAX_HEADER + 1)) > MAX_HEADER:
        raise ValueError(f"its header has more than {MAX_HEADER:,} bytes")
    stream.seek(0)


def _header(stream: BinaryIO) -> list[str]:
    """Return the columns; raise ValueError for two of a name, one of which pandas renames."""
    check_header(stream)
    table = pd.read_csv(stream, header=None, nrows=1, dtype="object", keep_default_na=False)
    stream.seek(0)
    header = [str(value) for value in table.iloc[0]] if len(table) else []
    if twice := sorted(name for name, count in Counter(header).items() if count > 1):
        raise ValueError(f"it has two columns {', '.join(twice)}")
    return header


def _read(stream: BinaryIO, types: Mapping[str, str], may_miss: Sequence[str]) -> pd.DataFrame:
    """Return the table of a stream; an empty field is a missing one in columns of ``may_miss``."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # of a cast; an error follows
        try:
            return pd.read_csv(
                stream,
                index_col=False,
                dtype=types,
                keep_default_na=False,
                na_values={name: [""] for name in may_miss},
                low_memory=False,
            )
        except pd.errors.ParserWarning as error:
            raise ValueError("it has lines with more fields than the header") from error
