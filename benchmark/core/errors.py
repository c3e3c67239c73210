"""The one family of exceptions: every message says what is wrong, where, what is allowed and what to do."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable


class BenchmarkError(Exception):
    """Base of all errors that the command line prints without a traceback (exit status 2)."""


class ConfigError(BenchmarkError):
    """One or more problems of a configuration, reported together before anything starts."""

    def __init__(self, source: str, problems: Iterable[str]):
        self.source = source
        self.problems = list(problems)
        count = len(self.problems)
        head = f"{source}: {count} problem{'s' if count != 1 else ''}, nothing was started"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class DataError(BenchmarkError):
    """A dataset that is missing, incomplete, broken or not what its protocol demands."""


class ReferenceDataError(BenchmarkError):
    """Published numbers or frozen reference runs that cannot be used."""


class RunError(BenchmarkError):
    """A run that cannot start, continue or be written."""


def tell(error: BenchmarkError) -> int:
    """Prints ``error`` and returns its exit status, 2: all that can be said when the disk of the log is full."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, f"error: {error}\n")):
        try:
            print(text, end="", file=stream, flush=True)
        except (
            OSError
        ):  # what is left in the buffer must not fail again, at the exit, and change the status
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 2


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Returns the message for a name that is not registered, with the nearest known ones."""
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    return f"unknown {kind} '{name}'{hint} known: {', '.join(known) or 'none'}"
