"""Reading reference files strictly: an error names file, line and column and says what is allowed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError, unknown_name


def problem(path: Path, line: int, column: str, what: str) -> ReferenceDataError:
    """Returns the error for one cell of a reference file."""
    return ReferenceDataError(f"{path}, line {line}, column {column}: {what}")


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Returns the CSV file as texts, with the extra column ``line``; its header must be ``columns``."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            header = next(reader, [])
            if tuple(header) != tuple(columns):
                missing = [name for name in columns if name not in header]
                extra = [name for name in header if name not in columns]
                raise ReferenceDataError(
                    f"{path}, line 1: the columns must be {', '.join(columns)}"
                    f" (missing: {', '.join(missing) or 'none'}; unknown: {', '.join(extra) or 'none'})"
                )
            rows = []
            for row in reader:
                if len(row) != len(columns):
                    raise ReferenceDataError(
                        f"{path}, line {reader.line_num}: {len(row)} fields instead of {len(columns)}; "
                        "quote fields that contain commas"
                    )
                rows.append((*row, reader.line_num))
    except FileNotFoundError as error:
        raise ReferenceDataError(
            f"{path} does not exist; write it with 'python -m benchmark freeze STUDY', "
            "or correct the references of the study"
        ) from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReferenceDataError(f"{path} cannot be read as CSV ({error})") from error
    return pd.DataFrame(rows, columns=[*columns, "line"])


def check_choices(path: Path, table: pd.DataFrame, column: str, allowed: Sequence[str]) -> None:
    """Raises for the first value of ``column`` that is not in ``allowed``, with the nearest one."""
    wrong = table[~table[column].isin(list(allowed))]
    if len(wrong):
        row = wrong.iloc[0]
        raise problem(path, row["line"], column, unknown_name(column, row[column], allowed))


def check_numbers(
    path: Path, table: pd.DataFrame, column: str, *, integer: bool, required: bool
) -> pd.Series:
    """Returns ``column`` as nullable floats or integers (empty text: missing); raises for anything else."""
    texts = table[column]
    numbers = pd.to_numeric(texts.where(texts != ""), errors="coerce").astype("Float64")
    bad = (numbers.isna() & ((texts != "") | required)) | (numbers < 0)
    if integer:
        bad |= numbers.notna() & (numbers % 1 != 0)
    bad |= numbers.isin([float("inf")])
    if bad.any():
        row = table[bad.fillna(False).astype(bool)].iloc[0]
        kind = (
            "a whole number that is not negative"
            if integer
            else "a finite number that is not negative"
        )
        raise problem(path, row["line"], column, f"'{row[column]}' is not {kind}")
    return numbers.astype("Int64") if integer else numbers


def check_unique(path: Path, table: pd.DataFrame, columns: list[str]) -> None:
    """Raises when two rows agree in all of ``columns``: then one of them is a slip."""
    facts = table[columns].astype(str).fillna("")  # as texts, missing numbers equal each other
    again = table[facts.duplicated()]
    if len(again):
        row = again.iloc[0]
        first = table.loc[(facts == facts.loc[row.name]).all(axis=1), "line"].iloc[0]
        raise problem(
            path,
            row["line"],
            columns[0],
            f"repeats line {first} in every fact; keep one of the two",
        )
