"""``python -m benchmark``: every step of the suite as a command, usable without Snakemake."""

import importlib
import io
import os
import sys
from pathlib import Path

# This check has to start where torch, timm, numpy, pandas and pillow are, and no typer.
if __name__ == "__main__" and sys.argv[1:3] == ["bench", "gpu"]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    sys.exit(importlib.import_module("perf.gpu.check").main(sys.argv[3:]))

# A step of a workflow is forked from the process that has everything imported, where there is one.
if __name__ == "__main__" and os.environ.get("BENCHMARK_FORK_SERVER"):
    from benchmark.training.fork_server.client import step_forked

    if (_status := step_forked(sys.argv[1:])) is not None:
        sys.exit(_status)

from benchmark.cli import app
from benchmark.cli.imports import import_verbs
from benchmark.core.errors import BenchmarkError, RunError, is_closed, print_error

import_verbs()

# Shells complete programs, not modules, so completion is set up for the installed command whichever
# was called.
PROGRAM = "ranking-benchmark"
COMPLETION = ("--install-completion", "--show-completion")


def open_closed_streams() -> None:
    """Lead streams that a shell has closed (``>&-``) nowhere: a file would get their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def main() -> None:
    """Runs the command line; an expected error becomes one message and exit status 2."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without a letter shows its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name=PROGRAM if sys.argv[1:2] and sys.argv[1].startswith(COMPLETION) else None)
    except BenchmarkError as error:
        sys.exit(print_error(error))
    except OSError as error:  # a full disk, a name that is too long: the machine's, not the code's
        place = f"{str(error.filename)[:200]}: " if error.filename else ""
        sys.exit(print_error(RunError(f"{place}{error.strerror or error}")))
    except RuntimeError as error:
        if not str(error).startswith("Symlink loop"):  # of Path.resolve, until Python 3.13
            raise
        sys.exit(print_error(RunError(f"{error}: links in a circle; remove them")))
    except MemoryError:
        sys.exit(
            print_error(RunError("the memory is full; give the process more, or smaller files"))
        )
    except UnicodeEncodeError as error:  # of a path
        words = f"{error.object[:200]!a} cannot be named in this locale; set PYTHONUTF8=1"
        sys.exit(print_error(RunError(words)))
    except ValueError:
        if not is_closed(sys.stdout):
            raise
        words = "a plugin or a loss's file closed the standard output; it belongs to the command"
        sys.exit(print_error(RunError(words)))


if __name__ == "__main__":
    main()
