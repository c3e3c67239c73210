"""The one family of exceptions: each says what is wrong, where, what is allowed, what to do."""

import contextlib
import difflib
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from benchmark.core.environment import PLUGINS, value_of
from benchmark.core.words import count

# The packages, and the files of a workflow, that may end the program.
ENDING = {"__main__", "benchmark", "click", "typer", "snakemake", "argparse"}
WORKFLOW = (".smk", "Snakefile")
# Bytes that are shown of a long message: what is wrong comes first, advice last.
START = 1_400
END = 400


class BenchmarkError(Exception):
    """Base of all errors that the command line prints without a traceback (exit status 2).

    ``problems`` lists what is wrong; it is empty if the error has only a message.
    """

    problems: "Sequence[Problem]" = ()


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration.

    message  what is wrong, what is allowed, what to do
    key      dotted key of the value, such as ``blocks.0.losses.2``
    line     line of the value, from 1, if it is known
    code     name of this kind of problem, such as ``unknown_name``; messages may change, codes not
    """

    message: str
    key: str = ""
    line: int | None = None
    code: str = ""

    def below(self, key: str) -> "Problem":
        """Return the problem with its key below ``key``."""
        return replace(self, key=".".join(filter(None, (key, self.key))))

    def __str__(self) -> str:
        position = self.key
        if self.line is not None:
            position = f"{position or 'file'} (line {self.line})"
        return f"{position}  {self.message}".strip()


def failing(*checks: tuple[object, str, str]) -> list[Problem]:
    """Return the problems of checks: (whether it is a problem, key, message)."""
    return [Problem(message, key) for wrong, key, message in checks if wrong]


class ConfigError(BenchmarkError):
    """One or more problems of a configuration, reported together before anything starts."""

    def __init__(self, source: str, problems: Iterable[Problem | str]):
        self.source = source
        self.problems = []
        for problem in problems:
            if isinstance(problem, str):
                problem = Problem(problem)
            self.problems.append(problem)
        number = count(len(self.problems), "problem")
        lines = [f"{source}: {number}, nothing was started"]
        lines += [f"  {problem}" for problem in self.problems]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes this error again, in another process."""
        return ConfigError, (self.source, self.problems)


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
    """Return an error if foreign code ended the program; None if the command line ended it."""
    steps = traceback.walk_tb(end.__traceback__)
    frame, line = [step for step in steps if _module(step[0]) != "_sitebuiltins"][-1]
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
    """Raise the error of ``ended`` if foreign code in the block ends the program."""
    try:
        yield
    except SystemExit as end:
        raise ended(end) or end from None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def print_error(error: BenchmarkError) -> int:
    """Print ``error`` and return its exit status, 2."""
    sys.stdout.flush()
    print(f"error: {shortened(printable(str(error)))}", file=sys.stderr)
    return 2


def shortened(message: str) -> str:
    """Return a message of at most 2 kB: its start, how many bytes are left out, and its end."""
    content = message.encode(errors="backslashreplace")
    left_out = len(content) - START - END
    if left_out <= 0:
        return message
    start = content[:START].decode(errors="ignore")
    end = content[-END:].decode(errors="ignore")
    return f"{start}... ({left_out:,} bytes left out) ...{end}"


def printable(text: str) -> str:
    """Return ``text`` with escapes for characters that control a terminal."""
    letters = []
    for letter in text:
        if not letter.isprintable() and letter not in "\n\t":
            letter = ascii(letter)[1:-1]
        letters.append(letter)
    return "".join(letters)


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with the nearest known name."""
    extensible = ("loss", "dataset", "sampler", "table", "figure")  # plugins may add them
    known = sorted(known)
    may_be_plugin = kind in extensible and not value_of(PLUGINS)
    cutoff = 0.75 if may_be_plugin else 0.5
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=cutoff)
    message = f"unknown {kind} '{name}'; "
    if close:
        message += f"did you mean '{close[0]}'? "
    message += f"known: {', '.join(known) or 'none'}"
    if may_be_plugin and not close:
        message += f"; {PLUGINS} is not set, so files of your own are not read"
    return message


def unknown(
    key: str, kind: str, names: Iterable[object], known: Iterable[str]
) -> Iterator[Problem]:
    """Yield a problem at ``key`` for each of ``names`` that is not ``known``."""
    known = list(known)
    for name in names:
        if name not in known:
            yield Problem(unknown_name(kind, name, known), key, code="unknown_name")
