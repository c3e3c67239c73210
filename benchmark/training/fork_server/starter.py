"""Keep a fork server beside a workflow, which never waits for it and never fails because of it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmark.core.interrupts import held_back
from benchmark.training.fork_server.protocol import OFF, THREADS, VARIABLE

LONGEST_FOLDER = 80  # characters; Linux allows 107 in the path of a socket


class ForkServer:
    """The server's process and its private folder; ``stop`` may be called in any state."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: str | None = None

    def start(self, *, runs: bool = True) -> None:
        """Start the server and let later commands find it; only where Linux offers pidfds.

        Without ``runs`` it is for steps alone, and imports no torch.
        """
        if os.environ.get(VARIABLE) or not hasattr(os, "pidfd_open"):
            return
        parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < LONGEST_FOLDER else "/tmp"
        self._folder = tempfile.mkdtemp(prefix="benchmark-", dir=parent)  # for its owner only
        path = str(Path(self._folder) / "socket")
        command = [sys.executable, "-m", "benchmark.training.fork_server.server", path]
        command += ["runs"] if runs else []
        # runs with other thread settings start by themselves
        environment = {**THREADS, **os.environ}
        with held_back():
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
            )
        os.environ[VARIABLE] = path

    def stop(self) -> None:
        """Let the server end after its last run."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process = None
            os.environ[VARIABLE] = OFF
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
