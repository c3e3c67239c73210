"""``python -m benchmark.training.fork_server.server SOCKET``: import what a run needs, then fork.

One thread only, so that a fork is safe; nothing touches a GPU before the fork. Each connection gets
a fork at once, which reads the request and becomes the run. So no client can stop or break the
server, and nothing that happens to the server reaches a run. It ends with its standard input, which
is when the workflow that started it does.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

from benchmark.core.code_version import code_version
from benchmark.core.errors import BenchmarkError, print_error
from benchmark.training.fork_server.protocol import Request, facts_at_start

PATIENCE = 10.0  # seconds for a client to say what it wants


def main(path: str) -> None:
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
            _import_everything()
            gc.collect()
            gc.freeze()  # so that collections in the forks do not copy the shared pages
            server.serve(listener)
        finally:
            Path(path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                Path(path).parent.rmdir()


class Server:
    """What the server started with, and what its forks are held to."""

    def __init__(self) -> None:
        self.at_start = facts_at_start()
        # SIGINT and SIGHUP reach the runs, which save their state; for no fork the server waits
        ignored = (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        self.handlers = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
        self.sources: dict[str, float] = {}

    def serve(self, listener: socket.socket) -> None:
        """Fork for each connection until the standard input ends."""
        self.sources = _imported_sources()
        while True:
            ready, _, _ = select.select([sys.stdin, listener], [], [])
            if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
                return
            # without memory for a fork the connection is closed, and the command trains by itself
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                if os.fork() == 0:
                    listener.close()
                    self._become_run(connection)

    def _become_run(self, connection: socket.socket) -> NoReturn:
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
            if self._fits(request):
                _die_with(connection)
                _send(connection, pid=os.getpid())
                status = _run(request)
                _send(connection, status=status)
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
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


def _die_with(connection: socket.socket) -> None:
    """Ask for SIGIO, which ends this process, when the client closes its end or is gone."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)


def _send(connection: socket.socket, **message: int) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _run(request: Request) -> int:
    """Train; return the exit status that ``python -m benchmark train`` would have."""
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    tempfile.tempdir = None  # to be found again with these variables
    from benchmark.training.interrupt import attempt

    try:
        out = None if request.out is None else Path(request.out)
        return attempt(Path(request.spec), out, request.started)
    except BenchmarkError as error:
        return print_error(error)
    except BaseException:  # whatever ends a run, its log must say so
        traceback.print_exc()
        return 1


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
    main(sys.argv[1])
