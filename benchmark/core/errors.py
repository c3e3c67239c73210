"""The one family of exceptions: each says what is wrong, where, what is allowed, what to do."""

import contextlib
import difflib
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType

from benchmark.core.environment import PLUGINS, value_of
from benchmark.core.words import count

# The packages that may end the program, and the names of a workflow's files, which may, too.
ENDING = {"__main__", "benchmark", "click", "typer", "snakemake", "argparse"}
WORKFLOW = (".smk", "Snakefile")


class BenchmarkError(Exception):
    """Base of all errors that the command line prints without a traceback (exit status 2).

    ``problems`` lists what is wrong, where the error says so.
    """

    problems: "Sequence[Problem]" = ()


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration.

    message  what is wrong, what is allowed, what to do
    key      dotted place of the value, such as ``blocks.0.losses.2``
    line     where it stands, from 1, when that is known
    code     name of this kind of problem, such as ``unknown_name``; it stays when words change
    """

    message: str
    key: str = ""
    line: int | None = None
    code: str = ""

    def below(self, key: str) -> "Problem":
        """Return the problem with its key below another one."""
        return replace(self, key=".".join(filter(None, (key, self.key))))

    def __str__(self) -> str:
        place = self.key
        if self.line is not None:
            place = f"{place or 'file'} (line {self.line})"
        return f"{place}  {self.message}".strip()


def failing(*checks: tuple[object, str, str]) -> list[Problem]:
    """Return the problems among checks, each a condition that is true of one, its key and words."""
    return [Problem(words, key) for wrong, key, words in checks if wrong]


class ConfigError(BenchmarkError):
    """One or more problems of a configuration, reported together before anything starts."""

    def __init__(self, source: str, problems: Iterable[Problem | str]):
        self.source = source
        self.problems = [
            problem if isinstance(problem, Problem) else Problem(problem) for problem in problems
        ]
        found = count(len(self.problems), "problem")
        head = f"{source}: {found}, nothing was started"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class DataError(BenchmarkError):
    """A dataset that is missing, incomplete, broken or not what its protocol demands."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()):
        super().__init__(message)
        self.problems = problems


class ReferenceDataError(BenchmarkError):
    """Published numbers or frozen reference runs that cannot be used."""


class RunError(BenchmarkError):
    """A run that cannot start, continue or be written."""


def ended(end: SystemExit) -> RunError | None:
    """Return the error of code that ended the program, None where the command line itself did."""
    steps = traceback.walk_tb(end.__traceback__)
    places = [(frame, line) for frame, line in steps if _module(frame) != "_sitebuiltins"]
    frame, line = places[-1]
    if _module(frame).partition(".")[0] in ENDING:
        return None
    if frame.f_code.co_filename.endswith(WORKFLOW):
        return None
    return RunError(
        f"{frame.f_code.co_filename}, line {line}: it ended the program with sys.exit"
        f"({end.code!r}), which is left to the command line; return or raise an error instead"
    )


@contextlib.contextmanager
def not_ended_by_others() -> Iterator[None]:
    """Raise ``ended`` where code other than the suite's ends the program."""
    try:
        yield
    except SystemExit as end:
        raise ended(end) or end from None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def print_error(error: BenchmarkError) -> int:
    """Print ``error`` and return its exit status, 2."""
    sys.stdout.flush()
    print(f"error: {printable(str(error))}", file=sys.stderr)
    return 2


def printable(text: str) -> str:
    """Return ``text`` with escapes for letters that steer a terminal, as names may have."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1]
        for letter in text
    )


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for a name that is not registered, with the nearest known one."""
    own = ("loss", "dataset", "sampler", "table", "figure")  # what your files may add
    known = sorted(known)
    lost = kind in own and not value_of(PLUGINS)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.75 if lost else 0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    unset = ""
    if lost and not close:
        unset = f"; {PLUGINS} is not set, so files of your own are not read"
    return f"unknown {kind} '{name}'{hint} known: {', '.join(known) or 'none'}{unset}"


def unknown(
    key: str, kind: str, names: Iterable[object], known: Iterable[str]
) -> Iterator[Problem]:
    """Yield the problem of each of ``names`` at ``key`` that is not ``known``."""
    known = list(known)
    for name in names:
        if name not in known:
            yield Problem(unknown_name(kind, name, known), key, code="unknown_name")
