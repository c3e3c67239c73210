"""Dry runs of Snakemake in forks of one process, which imports what they need once.

As a program it reads one line a dry run (folder and arguments, as JSON) and answers with one line:
its exit status and what it printed, as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NEEDED = ("snakemake.cli", "benchmark.study.workflow", "benchmark.papers.printed")


class DryRuns:
    """Ask the program for dry runs with these variables; a context manager."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, __file__]
        self._program = subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> DryRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate()

    def ask(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Return the finished ``snakemake --dry-run`` in a folder; all it printed is stdout."""
        assert self._program.stdin and self._program.stdout
        asked = [str(folder), ["--dry-run", *arguments]]
        print(json.dumps(asked), file=self._program.stdin, flush=True)
        status, printed = json.loads(self._program.stdout.readline())
        return subprocess.CompletedProcess(asked[1], status, printed, "")


def _dry_run(folder: str, arguments: list[str], printed: Path) -> None:
    from snakemake.cli import main

    os.chdir(folder)
    with open(printed, "wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    main(arguments)


def _serve() -> None:
    for name in NEEDED:
        __import__(name)
    fork: Any = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed"
        for line in sys.stdin:
            process = fork.Process(target=_dry_run, args=(*json.loads(line), printed))
            process.start()
            process.join()
            print(json.dumps([process.exitcode, printed.read_text()]), flush=True)


if __name__ == "__main__":
    _serve()
