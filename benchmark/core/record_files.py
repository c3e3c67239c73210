"""Read records from JSON, validated: what is damaged is one error with path and key."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from benchmark.core.errors import RunError
from benchmark.core.paths import MAX_RECORD, read_regular

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Record = TypeVar("Record")
MANY = 1000  # errors; to tell about one of them takes a kilobyte


class Checked:
    """What pydantic is to check of a field: its ``Field`` or ``BeforeValidator``, by name.

    A record that is made, not read, needs no pydantic.
    """

    def __init__(self, name: str, *arguments: Any, **limits: Any):
        self._part = name, arguments, limits

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of the field."""
        import pydantic

        name, arguments, limits = self._part
        part = getattr(pydantic, name)(*arguments, **limits)
        return handler.generate_schema(Annotated[source, part])


Finite = Annotated[float, Checked("Field", allow_inf_nan=False)]


def read_record(kind: type[Record], path: Path, what: str, command: str = "") -> Record:
    """Return the JSON file at ``path`` as a ``kind``, called ``what``; raise RunError.

    ``command`` is the verb, with its arguments, that writes the file; "": a run does.
    """
    try:
        data = read_regular(Path(path), MAX_RECORD)
    except FileNotFoundError as error:
        advice = f": run 'python -m benchmark {command}'" if command else f"; expected {what}"
        raise RunError(f"{path} does not exist{advice}") from error
    except OSError as error:
        raise unreadable(path, what, str(error), command) from error
    return parse_record(kind, data, path, what, command)


def parse_record(
    kind: type[Record], data: bytes, path: Path, what: str, command: str = ""
) -> Record:
    """Return JSON of ``path`` as a ``kind``; raise RunError with the keys that are wrong."""
    try:
        return parse_strictly(kind, data)
    except ValueError as error:
        raise unreadable(path, what, str(error), command) from error


def parse_strictly(kind: type[Record], data: bytes) -> Record:
    """Return JSON as a ``kind``; raise ValueError with the keys that are wrong."""
    from pydantic import ValidationError

    validator: TypeAdapter[Record] = adapter(cast(Any, kind))
    try:
        return validator.validate_json(data, strict=True)
    except ValidationError as error:
        raise ValueError(_words(error)) from None


@functools.cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks a ``kind``; to make one takes long."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def unreadable(path: Path, what: str, reason: str, command: str = "") -> RunError:
    """Return the error of a damaged record."""
    advice = f"run 'python -m benchmark {command}' again"
    advice = advice if command else "delete it and run the study again"
    return RunError(f"{path} cannot be read as {what} ({reason}); {advice}")


def _words(error: ValidationError) -> str:
    """Return what is wrong with which keys, at most three of them; of very many the number."""
    if error.error_count() > MANY:
        return f"{error.error_count():,} of its values are wrong"
    lines = []
    for item in sorted(error.errors(), key=lambda item: item["loc"] != ("schema",)):
        key = ".".join(map(str, item["loc"]))
        if key == "schema" and "expected" in item.get("ctx", {}):
            return f"has schema {item['input']}, this version reads {item['ctx']['expected']}"
        value = f", is {str(item['input'])[:40]!r}" if item["type"] != "missing" and key else ""
        lines.append(f"{key}  {item['msg']}{value}".strip())
    more = f"; and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more
