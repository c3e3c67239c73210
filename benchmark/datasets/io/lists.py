"""Text files that list images: rows of fields, each malformed one named with its line number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

import pandas as pd

from benchmark.datasets.io.findings import Findings


def read_rows(
    findings: Findings,
    file: str,
    columns: Sequence[str],
    *,
    header: str | None = None,
    skip: int = 0,
) -> pd.DataFrame:
    """Returns the rows of a list below the root as text columns; fields are separated by blanks.

    ``header`` gives the fields that line ``skip + 1`` must hold; ``skip`` lines come before it. Empty lines are
    passed over. What is wrong goes into the findings: an unreadable or empty file, another header, lines with more
    or fewer fields, and fields of a column named ``path`` that leave the root.
    """
    lines = _lines(findings, file)
    if lines is None:
        return pd.DataFrame(columns=list(columns), dtype=object)
    start = skip
    if header is not None:
        found = " ".join(lines[skip].split()) if len(lines) > skip else ""
        if found != header:
            findings.add(
                f"{file}: line {skip + 1} is {found[:80]!r}; expected the header {header!r}"
            )
        start += 1
    path_at = list(columns).index("path") if "path" in columns else None
    flat: list[
        str
    ] = []  # all fields in one list: a list per row would cost more than reading the file
    malformed = []
    for number, line in enumerate(lines[start:], start=start + 1):
        fields = line.split()
        if len(fields) == len(columns) and (path_at is None or not leaves_root(fields[path_at])):
            flat += fields
        elif fields:
            malformed.append(f"line {number}: {line[:100]!r}")
    shape = " ".join(f"<{column}>" for column in columns)
    findings.add_all(
        f"malformed lines in {file}",
        malformed,
        f"each must read {shape}, with paths below the root",
    )
    if not flat and not malformed:
        findings.add(f"{file} lists nothing; unpack it again")
    return pd.DataFrame(
        {column: flat[at :: len(columns)] for at, column in enumerate(columns)}, dtype=object
    )


def keep_numbers(findings: Findings, file: str, table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Returns the rows whose ``column`` holds a whole number, as int64; the others go into the findings."""
    right = table[column].map(lambda text: text.isdecimal() and len(text) < 19).astype(bool)
    return _keep(findings, file, table, right, f"{column} must be a whole number").astype(
        {column: "int64"}
    )


def keep_words(
    findings: Findings, file: str, table: pd.DataFrame, column: str, words: Sequence[str]
) -> pd.DataFrame:
    """Returns the rows whose ``column`` holds one of the words; the others go into the findings."""
    return _keep(
        findings,
        file,
        table,
        table[column].isin(words),
        f"{column} must be one of {', '.join(words)}",
    )


def leaves_root(path: str) -> bool:
    """Says whether a path, read as POSIX or Windows would, is absolute or climbs."""
    if ".." not in path and ":" not in path and path[:1] not in ("/", "\\"):
        return False
    windows = PureWindowsPath(path)
    return PurePosixPath(path).is_absolute() or bool(windows.anchor) or ".." in windows.parts


def _keep(
    findings: Findings, file: str, table: pd.DataFrame, right: pd.Series, form: str
) -> pd.DataFrame:
    wrong = [repr(" ".join(row)[:100]) for row in table[~right].itertuples(index=False)]
    findings.add_all(f"malformed lines in {file}", wrong, form)
    return table[right]


def _lines(findings: Findings, file: str) -> list[str] | None:
    try:
        return (findings.root / file).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        findings.add(f"{file} is not text; unpack it again")
    except OSError as error:
        findings.add(f"cannot read {file}: {error.strerror}; unpack it again")
    return None
