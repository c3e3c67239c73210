"""What goes wrong in a component from elsewhere is said with its name and its file."""

import sys
import traceback
from typing import Any, NoReturn

from benchmark.core.errors import BenchmarkError, ConfigError, RunError

PACKAGE = __name__.partition(".")[0]
# The command line takes these for the machine's: a full disk, a locale without a letter, Ctrl-D.
OF_THE_MACHINE = (OSError, UnicodeError, EOFError)


def file_of(target: Any) -> str | None:
    """Return the file that a class or function from elsewhere is of, None for the suite's own."""
    module = f"{getattr(target, '__module__', '')}"
    if module.partition(".")[0] == PACKAGE:
        return None
    return getattr(sys.modules.get(module), "__file__", None)


def in_words(error: BaseException) -> str:
    """Return what somebody's code raised, in one line; its text, too, may be of that code."""
    try:
        text = " ".join(str(error).split())[:200].encode(errors="backslashreplace").decode()
    except Exception:
        text = "without words"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def line_in(file: str, error: BaseException) -> str:
    """Return the last line of a file that an error passed through, as ", line 5", or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f", line {frame.lineno}" for frame in frames if frame.filename == file]
    return "".join(lines[-1:])


def raise_named(error: BaseException, words: str, target: Any) -> NoReturn:
    """Raise again, inside ``except``, what a component raised; ``words`` name it and its file.

    The traceback of an error in the component's own lines is kept, and ends with the words. Of any
    other, such as a method with other arguments or ``sys.exit``, it would show the suite's lines
    alone: then the words and the error's are all. What the suite's own components raise is not
    changed.
    """
    file = file_of(target)
    expected = isinstance(error, BenchmarkError)
    of_suite = type(error).__module__.partition(".")[0] == PACKAGE and not expected
    if file is None or of_suite or isinstance(error, (ConfigError, MemoryError)):
        raise error
    if expected:
        raise type(error)(f"{words}: {error}") from error
    own = line_in(file, error)
    place = f"{words}{own}"
    if own and isinstance(error, Exception) and not isinstance(error, OF_THE_MACHINE):
        error.add_note(f"raised in {place}")
        raise error
    raise RunError(f"{place}: {in_words(error)}") from error
