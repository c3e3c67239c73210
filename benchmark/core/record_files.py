"""Read records from JSON: one that is missing or cannot be read is one error with its path."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from benchmark.core.errors import RunError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record")


def read_record(kind: type[Record], path: Path, what: str, command: str = "") -> Record:
    """Return the JSON file at ``path`` as a ``kind``, called ``what``; raise RunError.

    ``command`` is the verb, with its arguments, that writes the file; "": a run does.
    """
    return parse_record(kind, read_bytes(path, what, command), path, what, command)


def read_bytes(path: Path, what: str, command: str = "") -> bytes:
    """Return the content of a record; raise RunError where it is missing."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        advice = f": run 'python -m benchmark {command}'" if command else f"; expected {what}"
        raise RunError(f"{path} does not exist{advice}") from error
    except OSError as error:
        raise unreadable(path, what, error, command) from error


def parse_record(
    kind: type[Record], data: bytes, path: Path, what: str, command: str = ""
) -> Record:
    """Return JSON of ``path`` as a ``kind``; raise RunError with the keys that are wrong."""
    try:
        record: Record = adapter(cast(Any, kind)).validate_json(data)
    except ValueError as error:
        raise unreadable(path, what, error, command) from error
    return record


@functools.cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads a ``kind``; to make one takes long."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def unreadable(path: Path, what: str, error: Exception, command: str = "") -> RunError:
    """Return the error of a record that cannot be read, with the first thing that is wrong."""
    from pydantic import ValidationError

    reason = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()
    advice = f"run 'python -m benchmark {command}' again"
    advice = advice if command else "delete it and run the study again"
    return RunError(f"{path} cannot be read as {what} ({reason}); {advice}")
