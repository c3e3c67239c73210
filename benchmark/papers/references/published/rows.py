"""Choosing printed rows by the values of their columns, for the files that say something about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmark.core.errors import ReferenceDataError, unknown_name


def read_entries(path: Path, key: str) -> list[dict[str, Any]]:
    """Returns the entries of a YAML list of {rows: {column: value or values}, ``key``: text}; raises when malformed."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    for number, entry in enumerate(entries, 1):
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("rows"), dict)
            or not isinstance(entry.get(key), str)
        ):
            raise ReferenceDataError(
                f"{path}, entry {number}: needs 'rows' (column: value) and '{key}' (a text)"
            )
    return entries


def chosen(table: pd.DataFrame, rows: Mapping[str, Any]) -> pd.Series:
    """Returns which rows of ``table`` have, in each named column, the value or one of the values."""
    mask = pd.Series(True, index=table.index)
    for column, values in rows.items():
        if column not in table.columns:
            raise ReferenceDataError(f"rows: {unknown_name('column', column, table.columns)}")
        mask &= table[column].isin(values if isinstance(values, list) else [values])
    return mask
