"""Write files atomically, so that a reader never sees half of a file; read records and tables."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from benchmark.core.errors import DataError, RunError

if TYPE_CHECKING:
    import pandas as pd


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path. On success it replaces ``path``, otherwise it is deleted.

    Raise RunError where no file can be made, as in results of somebody else.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror}); choose another folder"
        raise RunError(message) from error
    os.close(handle)
    temporary = Path(name)
    try:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as sorted, indented JSON, atomically; equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with its dates, atomically."""
    with replacing(target) as temporary:
        shutil.copy2(source, temporary)


def check_regular(path: Path | str, most: int | None = None) -> None:
    """Raise DataError for a pipe, a device, a folder, or a file of more than ``most`` bytes.

    Reading a pipe or a device may never end. Links are followed. A path that does not exist passes.
    """
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise DataError(f"{path} is not a regular file; give the path of a file on a disk")
    size = os.path.getsize(path)
    if most is not None and size > most:
        raise DataError(f"{path} has {size:,} bytes (allowed: {most:,}); divide it")


def begin_folder(folder: Path) -> None:
    """Make an empty folder; delete what is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


@contextlib.contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock file; raise RunError(``busy``) if another process holds it."""
    from filelock import FileLock, Timeout

    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout as error:
        raise RunError(busy) from error


Record = TypeVar("Record")


def read_record(
    kind: type[Record],
    path: Path,
    what: str,
    command: str = "",
    parse: Callable[[bytes], Any] = json.loads,
) -> Record:
    """Return the content of a file as a ``kind``; raise RunError if the file cannot be read.

    what     the kind of file, for the message
    command  verb and arguments that write the file; "": a run writes it
    parse    makes values of the file's bytes
    """
    try:
        record: Record = adapter(cast(Any, kind)).validate_python(parse(path.read_bytes()))
        return record
    except FileNotFoundError as error:
        advice = f": run 'python -m benchmark {command}'" if command else f"; expected {what}"
        raise RunError(f"{path} does not exist{advice}") from error
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        elif isinstance(error, KeyError):
            reason = f"it has no {error}"
        advice = "delete it and run the study again"
        if command:
            advice = f"run 'python -m benchmark {command}' to write it again"
        raise RunError(f"{path} cannot be read as {what} ({reason}); {advice}") from error


@functools.cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter that validates a ``kind``; it is slow to make."""
    return TypeAdapter(kind)


# Columns of texts: a dataset may be called 2011, and a loss NA. Names are never missing, other
# texts may be.
NAMES = (
    "dataset", "setting", "backbone", "loss", "base_loss", "against", "claim", "paper", "source",
    "table", "row_label",
)  # fmt: skip
TEXTS = (
    *NAMES, "split", "metric", "part", "stated_in", "sentence", "condition", "outside", "reason",
    "note",
)  # fmt: skip


def guess_csv(path: Path) -> pd.DataFrame:
    """Return the table in a file that the suite wrote; pandas guesses the types.

    Columns of ``TEXTS`` are texts. An empty field is missing, but in ``NAMES`` it is "". No other
    text means a missing value.
    """
    import pandas as pd

    if not path.read_text("utf-8").strip():
        return pd.DataFrame()
    table = pd.read_csv(
        path,
        dtype=dict.fromkeys(TEXTS, "str"),
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
    )
    for name in table.columns.intersection([*NAMES]):
        table[name] = table[name].fillna("")
    return table


def write_csv(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Write a table with ten digits; return the table with the same digits as the file."""
    rounded = table.copy()
    for name in table.select_dtypes("float"):
        rounded[name] = table[name].map("{:.10g}".format).astype(float)
    write_text(path, rounded.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
    return rounded
