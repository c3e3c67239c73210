"""What each step of a study read, so that the report can name the steps that read older files.

The workflow repeats what follows from a changed file. Who calls the verbs one by one may forget
one, and would print means of the old runs beside those of the new.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmark.core.files import write_text
from benchmark.core.paths import MAX_TABLE, read_regular

RUNS = ("runs.csv", "scores.csv")
COMPUTED = (*RUNS, "stats/*.csv", "verdicts.csv", "claims.csv", "papers/*.json")
# Verb -> the files below the study's folder that it reads, as patterns.
READS = {
    "stats": RUNS,
    "verdicts": RUNS,
    "claims": RUNS,
    "papers": (*RUNS, "verdicts.csv"),
    "gallery": (*RUNS, "stats/*.csv"),
    "tables": COMPUTED,
    "plots": COMPUTED,
}
FOLDER = "made_of"


@contextlib.contextmanager
def recording(folder: Path, step: str) -> Iterator[None]:
    """Record what the block, which is the verb ``step``, reads in a study's ``folder``."""
    read = _digest(folder, step)  # before: what changes meanwhile was not read
    yield
    write_text(_record(folder, step), read + "\n")


def outdated_steps(folder: Path) -> list[str]:
    """Return the verbs whose files in ``folder`` were made of others than are there now."""
    once = functools.cache(_content)  # steps read the same files
    return [
        step for step in READS if _recorded(folder, step) not in ("", _digest(folder, step, once))
    ]


def _record(folder: Path, step: str) -> Path:
    return folder / FOLDER / f"{step}.txt"


def _recorded(folder: Path, step: str) -> str:
    """Return the digest that ``step`` left; empty where it left none or an unreadable one."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return read_regular(_record(folder, step), limit=1000).decode("ascii").strip()
    return ""


def _content(path: Path) -> str:
    """Return the digest of a file; raise OSError where it cannot be read."""
    return hashlib.sha256(read_regular(path, MAX_TABLE)).hexdigest()


def _digest(folder: Path, step: str, content: Callable[[Path], str] = _content) -> str:
    """Return a digest of the names and ``content`` of the files that ``step`` reads."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in READS[step] for path in folder.glob(pattern)):
        with contextlib.suppress(OSError):  # its reader says what is wrong with it
            digest.update(f"{path.relative_to(folder).as_posix()} {content(path)}\n".encode())
    return digest.hexdigest()
