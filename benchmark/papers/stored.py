"""Records as JSON files below a study's results, written once and read back with their types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.paths import read_regular

T = TypeVar("T")


def write_records(path: Path, records: Iterable[Any]) -> None:
    """Write dataclass records as a JSON list; equal records give equal bytes."""
    write_json(path, [asdict(record) for record in records])


def read_records(path: Path, kind: type[T]) -> list[T]:
    """Return the records in a file; raise RunError where it is missing or another file."""
    try:
        found: list[T] = TypeAdapter(list[kind]).validate_json(read_regular(path))  # type: ignore[valid-type]
    except (OSError, ValidationError) as error:
        advice = "write it again with 'python -m benchmark papers STUDY'"
        raise RunError(f"{path} cannot be read ({error}); {advice}") from error
    return found
