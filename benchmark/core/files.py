"""Writing files so that a reader never sees half of one, whatever kills the writer."""

import contextlib
import errno
import functools
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.paths import read_regular

DEVICES = "/dev"
UNFINISHED = ".unfinished"  # in a folder that a step has begun to make
RANDOM = "[a-z0-9_]{8}"  # what mkstemp adds to a name


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which takes the place of ``path`` on success and else vanishes.

    The first one of a process in a folder removes what killed writers left there.
    """
    path = Path(path)
    temporary = None
    try:
        folder = os.path.realpath(path.parent)
        if folder == DEVICES:  # root would replace the device by a file
            raise OSError(errno.EINVAL, "a device, not a file", str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder, os.getpid())
        prefix = f".{path.name}.{_machine()}-{os.getpid()}-"
        handle, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        os.chmod(temporary, 0o666 & ~_umask())
        yield temporary
        with open(temporary, "rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                # a writer that failed may hold it open, and its room until it is let go
                os.truncate(temporary, 0)
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as sorted, indented JSON, atomically; equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def clear_place(path: Path) -> None:
    """Remove what stands where a file is to be written in place and is none: through a link the
    writer would end up elsewhere, for a pipe it would wait."""
    with contextlib.suppress(OSError):  # nothing is there, or the writer says what is wrong
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.unlink(path)


def refuse_links(folder: Path) -> None:
    """Raise RunError for links to folders in ``folder``, where steps make folders of their own.

    ``folder`` itself may be one: its owner may keep it on another disk.
    """
    for path in sorted(one for pattern in ("*", "analyses*/*") for one in folder.glob(pattern)):
        refuse_link(path)


def refuse_link(path: Path) -> None:
    """Raise RunError where ``path`` is a link to a folder."""
    if path.is_symlink() and path.is_dir():
        raise RunError(
            f"{path} is a link to a folder, through which files would be written elsewhere; "
            "remove the link: the step makes its folder anew"
        )


def remove_folder(path: Path) -> None:
    """Remove a folder as far as it can; ``rmtree`` alone would wait for a pipe in its place."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)


def begin_folder(folder: Path, record: str, other: str = "") -> None:
    """Make a step's folder anew, empty; ``record`` is the file that the step writes last in it.

    ``other`` is one more file by which its folder is known. Raise RunError for a folder with files
    that the step has not made.
    """
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    if names and not names & {record, other, UNFINISHED}:
        raise RunError(
            f"{folder} holds files, but no {record}, so that this step has not made it and would "
            "remove them; move it away, then start the same command again"
        )
    remove_folder(folder)
    write_text(folder / UNFINISHED, "")


def end_folder(folder: Path) -> None:
    """Note that a step's folder is complete."""
    (folder / UNFINISHED).unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file with its dates; what it replaces is never written through.

    Raise OSError for a source that is none, or has more than ``MAX_BYTES``: a sparse file of
    gigabytes costs nobody but the disk it is copied to.
    """
    content = read_regular(source)
    with replacing(target) as temporary:
        temporary.write_bytes(content)
        shutil.copystat(source, temporary)


@contextlib.contextmanager
def alone(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock file; raise RunError with the words ``busy`` where another process holds it."""
    from filelock import FileLock, Timeout

    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock, timeout=0)
        held.acquire()
    except Timeout as error:
        raise RunError(busy) from error
    except OSError as error:
        raise cannot_write(lock, error) from error
    try:
        yield
    finally:
        held.release()


def leftovers(path: Path) -> list[Path]:
    """Return the temporary files of ``path``: of writers that were killed, or still write."""
    path = Path(path)
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.*"))


@functools.lru_cache(maxsize=1000)  # listing 10,000 files takes ten times as long as a write
def _remove_abandoned(folder: str, process: int) -> None:
    """Remove the temporary files in ``folder`` whose writers, on this machine, are dead.

    Once a process: a forked one, whose number is another, looks again. A lock on them would say so,
    too, but on shared disks it can shut out the writer's own library.
    """
    abandoned = re.compile(rf"\..+\.{_machine()}-(\d+)-{RANDOM}", re.DOTALL)
    with contextlib.suppress(OSError):  # it may be written to, but not listed
        for name in os.listdir(folder):
            found = abandoned.fullmatch(name)
            if found and not _is_alive(int(found[1])):
                with contextlib.suppress(OSError):  # another user's, or another writer removes it
                    os.unlink(os.path.join(folder, name))


@functools.cache
def _machine() -> str:
    """Return a word for this machine and its process numbers, which a container may have anew."""
    processes = ""
    with contextlib.suppress(OSError):
        processes = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {processes}".encode()).hexdigest()[:6]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    return True


def file_in_the_way(folder: Path) -> Path | None:
    """Return what stands where ``folder`` or one of its parents has to be, and is no folder."""
    there = next((each for each in (folder, *folder.parents) if os.path.lexists(each)), Path("."))
    return None if there.is_dir() else there


def prepare_folder(folder: Path) -> None:
    """Make ``folder`` if needed; raise RunError early when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(bytes(4096))  # a full disk takes the name of a file, but no block of it
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise cannot_write(folder, error) from error


def require_folder(folder: Path) -> None:
    """Raise RunError when ``folder`` is gone: what was deleted or unmounted is not made anew."""
    if not folder.is_dir():
        raise RunError(
            f"{folder} is gone: deleted, moved or unmounted while it was written to; "
            "put it back to continue, or start the same command again to begin anew"
        )


def cannot_write(path: Path | str, error: OSError) -> RunError:
    """Return the error to raise when ``path`` cannot be written: its reason, and what to do."""
    return RunError(
        f"cannot write {path}: {error.strerror or error}; free some space or choose a writable "
        "folder, then start the same command again: finished results are kept"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
