"""Writing files so that a reader never sees half of one, whatever kills the writer."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.core.errors import RunError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which takes the place of ``path`` on success and else vanishes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        temporary.chmod(0o666 & ~_umask())
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


def begin_folder(folder: Path) -> None:
    """Make a step's folder anew, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


@contextlib.contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock file; raise RunError with the words ``busy`` where another process holds it."""
    from filelock import FileLock, Timeout

    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout as error:
        raise RunError(busy) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
