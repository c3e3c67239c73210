"""Text files that list images: lines of fields, or tables with a header; each bad line is named."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.core.documents import whole_number
from benchmark.core.paths import leaves_root
from benchmark.datasets.base import Findings

LARGEST = 2**53  # of a table's numbers: pixels


def read_rows(
    findings: Findings,
    file: str,
    columns: Sequence[str],
    *,
    header: str | None = None,
    skip: int = 0,
    once: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a list below the root as text columns; blanks separate the fields.

    ``skip`` lines are passed over, then ``header`` gives the fields that the next line must have.
    Empty lines do not count. What is wrong goes into the findings: an unreadable or empty file,
    another header, lines with more or fewer fields, values of ``path`` that leave the root, and
    those of the column ``once`` that stand in several lines.
    """
    try:
        lines = (findings.root / file).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        findings.problems.append(f"cannot read {file}: {error}; unpack it again")
        return pd.DataFrame(columns=list(columns), dtype=object)
    if header is not None:
        first = " ".join(" ".join(lines[skip : skip + 1]).split())
        if first != header:
            findings.problems.append(
                f"{file}: line {skip + 1} is {first!r:.80}; expected the header {header!r}"
            )
        skip += 1
    path_at = columns.index("path") if "path" in columns else None
    flat: list[str] = []  # one list of all fields: a list per row costs more than reading the file
    malformed = []
    for number, line in enumerate(lines[skip:], start=skip + 1):
        fields = line.split(None, len(columns))  # one too many is enough to see
        if len(fields) == len(columns) and (path_at is None or not leaves_root(fields[path_at])):
            flat += fields
        elif fields:
            malformed.append(f"line {number}: {line[:100]!r}")
    shape = " ".join(f"<{column}>" for column in columns)
    advice = f"each must read {shape}, with paths below the root"
    findings.add_all(f"malformed lines in {file}", malformed, advice)
    if not flat and not malformed:
        findings.problems.append(f"{file} lists nothing; unpack it again")
    parts = {column: flat[at :: len(columns)] for at, column in enumerate(columns)}
    table = pd.DataFrame(parts, dtype=object)
    if once:
        twice = table[once][table[once].duplicated()]
        findings.add_all(f"{once}s given twice in {file}", twice, "each must stand once")
    return table


def select_numbers(findings: Findings, file: str, table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows whose ``column`` is a whole number, as int64; report the others."""
    valid = table[column].map(whole_number).notna()
    rows = select(findings, file, table, valid, f"{column} must be a whole number")
    return rows.astype({column: "int64"})


def select(
    findings: Findings, file: str, table: pd.DataFrame, valid: pd.Series, advice: str
) -> pd.DataFrame:
    """Return the rows that are valid; report the others."""
    wrong = [repr(" ".join(row)[:100]) for row in table[~valid].itertuples(index=False)]
    findings.add_all(f"malformed lines in {file}", wrong, advice)
    return table[valid]


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
        words = f"cannot read {file}: {error}; get it from its publishers again"
        findings.problems.append(words)
        return pd.DataFrame({name: np.empty(0, object) for name in wanted})
    values = table[list(numbers)].apply(pd.to_numeric, errors="coerce")
    # a comparison with NaN is false
    wrong = table[list(texts)].isna().any(axis=1) | ~(values.abs() < LARGEST).all(axis=1)
    lines = [f"line {number + 2}" for number in np.flatnonzero(wrong)]
    advice = f"each must have {', '.join(wanted)}, the last {len(numbers)} as numbers"
    findings.add_all(f"malformed lines in {file}", lines, advice)
    return pd.concat([table[list(texts)].astype(object), values], axis=1)[~wrong]
