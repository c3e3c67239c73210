"""What no check expected ends a command in one message: what, where in the code, the last files."""

import contextlib
import os
import sys
import sysconfig
import traceback
from collections import deque
from pathlib import Path
from typing import Any

from benchmark.core.errors import BenchmarkError, ConfigError, RunError, print_error
from benchmark.core.registry import plugin_files

VARIABLE = "BENCHMARK_TRACEBACK"
_PACKAGE = Path(__file__).resolve().parents[1]
# Nobody's data: the interpreter, its packages, devices.
_SYSTEM = (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev")
_PLACES = 4  # lines of code that a message shows
_files: deque[str] = deque(maxlen=3)


def watch_files() -> None:
    """Keep the names of the last files that are read, for the message of a fault."""
    sys.addaudithook(_note)


def end_with(error: BaseException) -> int:
    """Print why a command ended and return its exit status, 2, or 1 for what no check expected."""
    if isinstance(error, BenchmarkError):
        return print_error(error)
    if (reason := _of_the_machine(error)) is not None:
        return print_error(reason)
    # An error in the lines of a plugin carries a note, and its traceback helps who wrote them.
    if hasattr(error, "__notes__") or os.environ.get(VARIABLE, "0") not in ("", "0"):
        traceback.print_exception(error)
    else:
        print_error(RunError(fault(error)))
    return 1


def fault(error: BaseException) -> str:
    """Return the message for an error that no check expected."""
    lines = [
        f"unexpected {in_words(error)}",
        f"  at {' < '.join(_places(error)) or 'a place that is not known'}",
    ]
    if _files:
        lines.append(f"  files read last: {', '.join(reversed(_files))}")
    with contextlib.suppress(ConfigError):  # the variable names folders that are none
        if plugins := ", ".join(map(str, plugin_files())):
            lines.append(f"  plugins in use, which may be the cause: {plugins[:500]}")
    lines.append(
        "  where such a file is damaged, replace it or derive it again; otherwise this is a fault "
        f"of the suite: please report it ({VARIABLE}=1 shows the traceback)"
    )
    return "\n".join(lines)


def _of_the_machine(error: BaseException) -> RunError | None:
    """Return the words for what is the machine's, a plugin's or the locale's, not the code's."""
    text = in_words(error).partition(": ")[2]
    if isinstance(error, OSError):  # a full disk, a name that is too long
        place = f"{str(error.filename)[:200]}: " if error.filename else ""
        return RunError(f"{place}{error.strerror or text}")
    # torch's for the CPU is a RuntimeError
    if isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in text:
        return RunError("the memory is full; give the process more, or smaller files")
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which must not be imported for it
        return RunError(
            f"the memory of the GPU is full ({text.partition(' Of the ')[0]}); less is needed with "
            "training: {micro_batch: 32} or {precision: bfloat16}"
        )
    if isinstance(error, RuntimeError) and text.startswith("Symlink loop"):  # until Python 3.13
        return RunError(f"{text}: links in a circle; remove them")
    if isinstance(error, UnicodeEncodeError):  # of a path
        return RunError(f"{error.object[:200]!a} cannot be named in this locale; set PYTHONUTF8=1")
    if isinstance(error, ValueError) and getattr(sys.stdout, "closed", True):
        return RunError(
            "a plugin or a loss's file closed the standard output; it belongs to the command"
        )
    return None


def in_words(error: BaseException) -> str:
    """Return an error and its text in one line."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _places(error: BaseException) -> list[str]:
    """Return the lines of the suite and of plugins that an error passed, the last one first."""
    frames = [
        (Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)
    ]
    return [
        f"{path.relative_to(_PACKAGE.parent) if _PACKAGE in path.parents else path}:{line}"
        for path, line in reversed(frames)
        if _PACKAGE in path.parents or not f"{path}".startswith((*_SYSTEM, "<"))
    ][:_PLACES]


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Keep the name of a file that is opened to be read, unless it is code or the system's."""
    if event != "open" or not isinstance(arguments[0], str):
        return
    path, mode, flags = arguments
    reads = "r" in mode if isinstance(mode, str) else not flags & os.O_ACCMODE  # os.open: no mode
    if not reads or path in _files or path.endswith((".py", ".pyc")):
        return
    # The working folder may be gone, and what is raised here would fail the opening.
    with contextlib.suppress(OSError):
        if not os.path.abspath(path).startswith(_SYSTEM):
            _files.append(path)
