"""The one family of exceptions: each says what is wrong, where, what is allowed, what to do."""

import contextlib
import difflib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_SHOWN = 200  # problems of one message
MAX_LINE, MAX_LETTERS = 2_000, 20_000  # of a line and of a message on a terminal
MAX_NAMES = 300  # of a kind that a message lists, and letters of one


class BenchmarkError(Exception):
    """Base of all errors that the command line prints without a traceback (exit status 2)."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration.

    message     what is wrong, what is allowed, what to do
    key         dotted place of the value, such as ``blocks.0.losses.2``
    file, line  where it stands, when that is known; a line counts from 1
    runs        words that name the runs it touches: "(24 runs, first: ...)"
    """

    message: str
    key: str = ""
    file: str = ""
    line: int | None = None
    runs: str = ""

    def __str__(self) -> str:
        place = self.key
        if self.line is not None:
            place = f"{place or 'file'} (line {self.line})"
        if self.file:
            place = f"{self.file}: {place}" if place else self.file
        return f"{place}  {self.message} {self.runs}".strip()


class ConfigError(BenchmarkError):
    """One or more problems of a configuration, reported together before anything starts."""

    def __init__(self, source: str, problems: Iterable[Problem | str]):
        self.source = source
        self.problems = [
            problem if isinstance(problem, Problem) else Problem(problem) for problem in problems
        ]
        count = len(self.problems)
        head = f"{source}: {count} problem{'s' if count != 1 else ''}, nothing was started"
        shown = [f"  {problem}" for problem in self.problems[:MAX_SHOWN]]
        more = [f"  and {count - MAX_SHOWN} more"] if count > MAX_SHOWN else []
        super().__init__("\n".join([head, *shown, *more]))


class DataError(BenchmarkError):
    """A dataset that is missing, incomplete, broken or not what its protocol demands."""


class ReferenceDataError(BenchmarkError):
    """Published numbers or frozen reference runs that cannot be used."""


class RunError(BenchmarkError):
    """A run that cannot start, continue or be written."""


@contextlib.contextmanager
def derived_files(folder: Path) -> Iterator[None]:
    """Turn what goes wrong in the block, which reads what steps derived, into a RunError.

    Each file is checked where it is read. That files of several steps contradict each other shows
    only in use, as a name or a number that is not there.
    """
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((f for f in frames[::-1] if "benchmark" in Path(f.filename).parts), frames[-1])
        where = f"{type(error).__name__} {error} in {Path(place.filename).name}:{place.lineno}"
        raise RunError(
            f"the files in {folder} are damaged or do not belong together ({where}); derive them "
            "again with 'python -m benchmark collect STUDY' and 'python -m benchmark finish STUDY'"
        ) from error


def print_error(error: BenchmarkError) -> int:
    """Print ``error`` and return its exit status, 2, also when the disk of the log is full."""
    message = f"error: {shown(error)}\n"
    # code from elsewhere may have put its own in the place of a stream, or nothing
    for stream, text in ((sys.stdout, ""), (sys.stderr or sys.__stderr__, message)):
        if stream is None or stream.closed:
            continue
        try:
            print(text, end="", file=stream, flush=True)
        except OSError:
            # what is left in the buffer must not fail again at the exit and change the status
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 2


def shown(error: BenchmarkError) -> str:
    """Return the message for people: a value of megabytes is cut, and escapes are shown."""
    lines = [
        line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}... ({len(line):,} letters)"
        for line in str(error).split("\n")
    ]
    text = "\n".join(lines)
    if len(text) > MAX_LETTERS:
        text = f"{text[:MAX_LETTERS]}...\n  and {len(text) - MAX_LETTERS:,} letters more"
    return printable(text)


def printable(text: str) -> str:
    """Return ``text`` with escapes for what could steer a terminal; names in files may hold it."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1]
        for letter in text
    )


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for a name that is not registered, with the nearest known one."""
    name, known = f"{name}", sorted(known)
    name = f"{name[:MAX_NAMES]}..." if len(name) > MAX_NAMES else name
    shown = known[:MAX_NAMES] + [f"and {len(known) - MAX_NAMES} more"] * (len(known) > MAX_NAMES)
    close = difflib.get_close_matches(name, known[:MAX_NAMES], n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    return f"unknown {kind} '{name}'{hint} known: {', '.join(shown) or 'none'}"
