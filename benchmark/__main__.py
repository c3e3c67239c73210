"""``python -m benchmark``: every step of the suite as a command, usable without Snakemake."""

import importlib
import io
import os
import pkgutil
import re
import signal
import sys

# Until ``main`` begins, Ctrl-C ends the process without a word: there is nothing to say.
if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from benchmark import cli
from benchmark.cli import app
from benchmark.core.errors import BenchmarkError, RunError, not_ended_by_others, print_error
from benchmark.core.interrupts import keep_interrupts

for module in pkgutil.iter_modules(cli.__path__):  # the verbs, which enter the command line
    importlib.import_module(f"benchmark.cli.{module.name}")

# Shells complete programs, not modules, so completion is set up for the installed command whichever
# was called.
PROGRAM = "ranking-benchmark"
COMPLETION = ("--install-completion", "--show-completion")


def main() -> None:
    """Run the command line; a BenchmarkError becomes one message and exit status 2."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without a letter shows its escape
            stream.reconfigure(errors="backslashreplace")
    keep_interrupts()
    arguments = sys.argv[1:]
    try:
        if any(word == "" or re.fullmatch("--.*=", word) for word in arguments):
            raise RunError("an argument is empty; is a variable of the shell not set?")
        try:
            os.getcwd()
        except OSError as error:
            raise RunError("the working folder is gone; change to one that exists") from error
        program = None
        if arguments and arguments[0].startswith(COMPLETION):
            program = PROGRAM
        with not_ended_by_others():
            app(prog_name=program)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BenchmarkError as error:
        sys.exit(print_error(error))


if __name__ == "__main__":
    main()
