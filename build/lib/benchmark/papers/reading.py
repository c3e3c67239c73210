"""Read a paper's files into typed records: all problems at once, with file, line and key."""

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import AfterValidator, ConfigDict, ValidationError

from benchmark.core.documents import read_document
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import adapter
from benchmark.core.options import worded


class Closed:
    """A record whose file may hold no other keys."""

    __pydantic_config__ = ConfigDict(extra="forbid")


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    seen: set[str | float] = set()
    for value in values:
        text = str(value)
        try:
            key: str | float = float(text)
        except ValueError:
            key = text
        if key in seen:
            raise ValueError(f"{getattr(value, 'name', text)} comes twice; keep one")
        seen.add(key)
    return values


Distinct = AfterValidator(_distinct)  # numbers are told apart by value


def read_yaml(path: Path, kind: Any, problems: list[str]) -> Any:
    """Return the file as a ``kind``; None for no file, or one with problems, which are added."""
    if not path.exists():
        return None
    try:
        document = read_document(path)
    except ConfigError as error:
        problems += [f"{path}: {problem}" for problem in error.problems]
        return None
    try:
        return adapter(kind).validate_python(document.data)
    except ValidationError as error:
        found = map(document.locate, worded(kind, document.data, error))
        problems += [f"{path}: {problem}" for problem in found]
        return None


def read_own(path: Path, kind: Any) -> Any:
    """Return a YAML file of this repository, which its tests check, as a ``kind``."""
    return adapter(kind).validate_python(read_document(path).data)


def read_csv(path: Path, kind: Any, problems: list[str], optional: Sequence[str] = ()) -> list[Any]:
    """Return each row of a CSV file as a ``kind`` with its ``line``; add problems.

    Columns are the fields of ``kind`` without a default, and maybe those of ``optional``.
    """
    try:
        text = path.read_text(encoding="utf-8")
        reader = csv.DictReader(io.StringIO(text, newline=""), restval="\0", restkey="\0")
        header = list(reader.fieldnames or ())
        rows = [{**row, "line": reader.line_num} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problems.append(f"{path} cannot be read as CSV ({error})")
        return []
    required = [
        item.name
        for item in dataclasses.fields(kind)
        if item.default is item.default_factory is dataclasses.MISSING and item.name != "line"
    ]
    words = {0: "is missing", 2: "comes twice; keep one"}
    counts = {name: min(2, header.count(name)) for name in required}
    found = [f"line 1: column '{name}' {words[n]}" for name, n in counts.items() if n != 1]
    known = [*required, *optional]
    found += [
        f"line 1: {unknown_name('column', name, known)}" for name in header if name not in known
    ]
    records = []
    for row in rows:
        place = f"line {row['line']}"
        if "\0" in row or "\0" in row.values():
            found.append(f"{place}: not {len(header)} fields; quote fields that contain commas")
            continue
        try:
            records.append(adapter(kind).validate_python(row))
        except ValidationError as error:
            found += [
                f"{place}, column {problem.key}: {problem.message}"
                for problem in worded(kind, row, error)
                if problem.key in header
            ]
    problems += [f"{path}, {line}" for line in found]
    return records
