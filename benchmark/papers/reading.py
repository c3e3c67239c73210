"""Read a paper's files into typed records: all problems at once, with file, line and key."""

import csv
import dataclasses
import io
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import AfterValidator, ConfigDict, ValidationError

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.record_files import adapter
from benchmark.study.documents import Document, read_document


class Closed:
    """A record whose file may hold no other keys."""

    __pydantic_config__ = ConfigDict(extra="forbid")


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values none of which comes twice; numbers are told apart by value."""
    seen = set()
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


Distinct = AfterValidator(_distinct)


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
        problems += [f"{path}: {_in_document(item, kind, document)}" for item in error.errors()]
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
    found = list(_header_problems(header, kind, optional))
    records = []
    for row in rows:
        place = f"line {row['line']}"
        if "\0" in row or "\0" in row.values():
            found.append(f"{place}: not {len(header)} fields; quote fields that contain commas")
            continue
        try:
            records.append(adapter(kind).validate_python(row))
        except ValidationError as error:
            for item in error.errors():
                if item["loc"][0] in header:
                    found.append(f"{place}, column {item['loc'][0]}: {_words(item, kind)}")
    problems += [f"{path}, {line}" for line in found]
    return records


def _header_problems(header: Sequence[str], kind: Any, optional: Sequence[str]) -> Iterator[str]:
    required = [
        item.name
        for item in dataclasses.fields(kind)
        if item.default is item.default_factory is dataclasses.MISSING and item.name != "line"
    ]
    for name in required:
        if name not in header:
            yield f"line 1: column '{name}' is missing"
        elif header.count(name) > 1:
            yield f"line 1: column '{name}' comes twice; keep one"
    for name in header:
        if name not in (*required, *optional):
            yield f"line 1: {unknown_name('column', name, [*required, *optional])}"


def _in_document(item: Mapping[str, Any], kind: Any, document: Document) -> str:
    return str(document.locate(Problem(_words(item, kind), ".".join(map(str, item["loc"])))))


def _words(item: Mapping[str, Any], kind: Any) -> str:
    """Return what is wrong with one value; an unknown key or word comes with the nearest one."""
    *above, last = item["loc"] or ("",)
    if item["type"] == "unexpected_keyword_argument":
        return unknown_name("key", last, _names(_hint_at(kind, above)))
    if item["type"] == "literal_error":
        return unknown_name(str(last), item["input"], _names(_hint_at(kind, item["loc"])))
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if item["type"] == "missing" else f"{message}: {str(item['input'])[:40]!r}"


def _hint_at(kind: Any, loc: Sequence[int | str]) -> Any:
    """Return the type of the value at ``loc`` of a ``kind``."""
    for key in loc:
        record = _record(kind)
        if record is not None:
            kind = typing.get_type_hints(record)[str(key)]
        elif arguments := typing.get_args(kind):
            kind = arguments[0 if isinstance(key, int) else -1]
    return kind


def _record(kind: Any) -> Any:
    """Return the dataclass that a type is, or that it allows beside None."""
    origin = typing.get_origin(kind)
    parts = typing.get_args(kind) if origin in (types.UnionType, typing.Union) else (kind,)
    return next((part for part in parts if dataclasses.is_dataclass(part)), None)


def _names(kind: Any) -> list[str]:
    """Return the keys of a record, or the words of a Literal."""
    record = _record(kind)
    if record is None:
        return [str(word) for word in typing.get_args(kind)]
    return [item.name for item in dataclasses.fields(record)]
