"""``python -m benchmark.training.fork_server.server SOCKET [runs]``: import what commands need,
then fork.

One thread only, so that a fork is safe; nothing touches a GPU before the fork. Each connection gets
a fork at once, which reads the request and becomes the command. So no client can stop or break the
server, and nothing that happens to the server reaches a command. It ends with its standard input,
which is when the workflow that started it does.
"""

import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn, TextIO

from benchmark.core.code_version import code_version
from benchmark.core.interrupts import INTERRUPTS, ignore_interrupts
from benchmark.training.fork_server.protocol import OFF, VARIABLE, Request, facts_at_start

PATIENCE = 10.0  # seconds for a client to say what it wants
IDLE = 1.0  # seconds without a client, after which the server imports what the steps will need


def main(path: str, runs: bool) -> None:
    """Serve at ``path`` until the standard input ends; early clients wait for the imports."""
    server = Server()  # before the imports, some of which set variables
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(path)
        except FileNotFoundError:
            return  # the workflow ended meanwhile and took the folder with it
        listener.listen(128)
        try:
            code_version()  # of the sources that are imported now, not of later ones
            importlib.import_module("benchmark.cli.imports").import_verbs()
            if runs:
                _import_everything()
                gc.collect()
                gc.freeze()  # so that collections in the forks do not copy the shared pages
            else:
                server.import_for_steps()
            server.serve(listener)
        finally:
            Path(path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                Path(path).parent.rmdir()


class Server:
    """What the server started with, and what its forks are held to."""

    def __init__(self) -> None:
        self.knows_steps = False
        self.at_start = facts_at_start()
        # SIGINT and SIGHUP reach the runs, which save their state; for no fork the server waits
        self.handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
        ignore_interrupts()
        self.handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self.sources: dict[str, float] = {}

    def serve(self, listener: socket.socket) -> None:
        """Fork for each connection until the standard input ends."""
        self.sources = _imported_sources()
        while True:
            patience = None if self.knows_steps else IDLE
            ready, _, _ = select.select([sys.stdin, listener], [], [], patience)
            if not ready:
                self.import_for_steps()
                continue
            if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
                return
            # without memory for a fork the connection is closed, and the command trains by itself
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                if os.fork() == 0:
                    listener.close()
                    self._become_command(connection)

    def import_for_steps(self) -> None:
        """Import what the steps behind the runs need."""
        importlib.import_module("benchmark.cli.imports").import_for_steps()
        self.knows_steps = True
        self.sources = _imported_sources() | self.sources  # what came first stays as it was
        gc.collect()
        gc.freeze()

    def _become_command(self, connection: socket.socket) -> NoReturn:
        """Do in a fork what the client asks for, with its streams; end when it asks for nothing."""
        status = 1
        try:
            for number, handler in self.handlers.items():
                signal.signal(number, handler)
            connection.settimeout(PATIENCE)
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            with connection.makefile("rb") as stream:
                request = Request(**json.loads(stream.readline()))
            for stream_number, descriptor in enumerate(streams):
                os.dup2(descriptor, stream_number)
                os.close(descriptor)
            sys.stdout, sys.stderr = _reopened(1, sys.stdout), _reopened(2, sys.stderr)
            if self._fits(request):
                _die_with(connection)
                _send(connection, pid=os.getpid())
                status = _run(request)
                _flush()  # the client closes, and ends this process, once it has the status
                _send(connection, status=status)
        finally:
            _flush()
            os._exit(status)

    def _fits(self, request: Request) -> bool:
        """Say whether a fork is what the command would be, and to the command why not."""
        differing = {name for name, _ in request.at_start.items() ^ self.at_start.items()}
        if _imported_sources() != self.sources:
            differing.add("code")
        if differing:
            reason = f"because these differ: {', '.join(sorted(differing))}"
            print(f"started by itself, not forked, {reason}", file=sys.stderr)
        return not differing


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()


def _die_with(connection: socket.socket) -> None:
    """Ask for SIGIO, which ends this process, when the client closes its end or is gone."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)


def _send(connection: socket.socket, **message: int) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _reopened(number: int, stream: Any) -> TextIO:
    """Return a stream like ``stream`` for what a descriptor is now: a file, a pipe, a terminal."""
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(number, "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or os.isatty(number),
        write_through=stream.write_through,
    )


def _run(request: Request) -> int:
    """Be ``python -m benchmark`` with the arguments; return the exit status that it would have."""
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    os.environ[VARIABLE] = OFF  # a fork asks for none
    tempfile.tempdir = None  # to be found again with these variables
    sys.argv = ["benchmark", *request.arguments]
    try:
        runpy.run_module("benchmark", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # whatever ends a command, its log must say so
        traceback.print_exc()
        return 1
    return 0


def _import_everything() -> None:
    """Import what runs import; only the optimiser's first use loads dynamo."""
    import faiss  # noqa: F401
    import torch

    from benchmark.losses import LOSSES
    from benchmark.models.vision_ops import prepare_torchvision
    from benchmark.training import run  # noqa: F401

    prepare_torchvision()
    import timm  # noqa: F401

    for entry in LOSSES:
        entry.target  # noqa: B018 - resolving a name imports its module
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])


def _imported_sources() -> dict[str, float]:
    """Return when each imported file of this package and of plugins was changed; 0: it is gone."""
    modules = [item for name, item in sys.modules.items() if name.startswith("benchmark")]
    files = [file for item in modules if (file := getattr(item, "__file__", None))]
    return {file: os.path.getmtime(file) if os.path.exists(file) else 0.0 for file in files}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["runs"])
