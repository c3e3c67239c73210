"""Names and files from outside: joined to a root that they cannot leave, opened only if regular.

Only this module judges a name that comes from a file, an archive or an address.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from benchmark.core.errors import DataError


@contextlib.contextmanager
def os_errors(what: str, advice: str) -> Iterator[None]:
    """Turn an OSError of the block into a DataError: what failed, the reason, what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{what}: {error.strerror or error}; {advice}") from error


def leaves_root(name: str) -> bool:
    """Say whether a name cannot be a path below a folder, read as POSIX or as Windows reads it.

    Such names are empty, absolute, climb with ``..`` or hold a NUL.
    """
    if name and not any(mark in name for mark in ("..", ":", "\0")) and name[0] not in "/\\":
        return False
    windows = PureWindowsPath(name)
    return (
        not name
        or "\0" in name
        or PurePosixPath(name).is_absolute()
        or bool(windows.anchor)
        or ".." in windows.parts
    )


def path_below(root: Path, name: str) -> Path:
    """Return ``root / name``; raise DataError when the name leaves the root."""
    if leaves_root(name):
        raise DataError(f"{name!r} leads out of {root}; names must be relative, without '..'")
    return root / name


def file_below(root: Path, name: str) -> Path:
    """Return ``path_below(root, name)``, which no link on the way leads out of the root.

    For names that a file from another machine gives; raise DataError for one that leaves.
    """
    path = path_below(root, name)
    # not Path.resolve, which raises RuntimeError for links in a circle: opening them says so
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise DataError(f"{name!r} leads out of {root} through a link; remove the link")
    return path


def is_text(name: str) -> bool:
    """Say whether a name can be written to a text file and shown on a terminal.

    Bytes that are not UTF-8 arrive as lone surrogates; control characters could steer a terminal.
    """
    return name.isprintable() or not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or 0xD800 <= ord(letter) < 0xE000
        for letter in name
    )


MAX_BYTES = 200_000_000  # of a file that is read at once; the largest published list has 130 MB
MAX_TABLE = 500_000_000  # of CSV; the index of three million packed images has 200 MB
MAX_RECORD = 20_000_000  # of JSON; where all its values are wrong they take 150 times its bytes


def open_regular(path: Path, limit: int | None = None) -> BinaryIO:
    """Open a regular file to read bytes; raise OSError for pipes and devices, which may block.

    Raise it, too, for a file of more than ``limit`` bytes: a sparse one costs nobody but its
    reader.
    """
    stream = open(path, "rb", opener=_open_regular)  # noqa: SIM115 - its user closes it
    if limit is not None and os.fstat(stream.fileno()).st_size > limit:
        stream.close()
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes", str(path))
    return stream


def read_regular(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; raise OSError as ``open_regular`` does."""
    with open_regular(path, limit) as stream:
        return stream.read()


def _open_regular(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle
