"""Comma-separated tables with a header, of which named columns are read and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.datasets.io.findings import Findings


def read_table(
    findings: Findings, file: str, texts: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """Return columns of a table below the root: ``texts`` as text, ``numbers`` as float64.

    Other columns are passed over. What is wrong goes into the findings: an unreadable or empty
    file, columns that are missing, rows without a text or with something else than a number.
    """
    wanted = [*texts, *numbers]
    nothing = pd.DataFrame({name: np.empty(0, object) for name in wanted})
    try:
        table = pd.read_csv(findings.root / file, dtype=str, skipinitialspace=True)
    except (OSError, ValueError) as error:  # pandas raises ValueError for what is no such table
        findings.add(f"cannot read {file}: {str(error)[:200]}; unpack it again")
        return nothing
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        findings.add_all(f"columns missing in {file}", missing, "get it from its publishers again")
        return nothing
    if not len(table):
        findings.add(f"{file} lists nothing; unpack it again")
        return nothing
    values = table[list(numbers)].apply(pd.to_numeric, errors="coerce")
    wrong = table[list(texts)].isna().any(axis=1) | ~np.isfinite(values).all(axis=1)
    lines = [f"line {number + 2}" for number in np.flatnonzero(wrong)]
    findings.add_all(
        f"malformed lines in {file}",
        lines,
        f"each must have {', '.join(wanted)}, the last as numbers"
        if numbers
        else "text in each column",
    )
    return pd.concat([table[list(texts)].astype(object), values], axis=1)[~wrong]
