"""Read records from JSON: one that is missing or cannot be read is one error with its path."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from benchmark.core.errors import RunError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record")


def read_record(
    kind: type[Record],
    path: Path,
    what: str,
    command: str = "",
    parse: Callable[[bytes], Any] = json.loads,
) -> Record:
    """Return the file at ``path`` as a ``kind``, called ``what``; raise RunError.

    ``command`` is the verb, with its arguments, that writes the file; "": a run does.
    ``parse`` makes values of the file's bytes.
    """
    try:
        record: Record = adapter(cast(Any, kind)).validate_python(parse(Path(path).read_bytes()))
        return record
    except FileNotFoundError as error:
        advice = f": run 'python -m benchmark {command}'" if command else f"; expected {what}"
        raise RunError(f"{path} does not exist{advice}") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = str(error)
        if hasattr(error, "errors"):  # pydantic's: the first thing that is wrong
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()
        advice = f"run 'python -m benchmark {command}' again"
        advice = advice if command else "delete it and run the study again"
        raise RunError(f"{path} cannot be read as {what} ({reason}); {advice}") from error


@functools.cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads a ``kind``; to make one takes long."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
