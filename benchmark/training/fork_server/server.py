"""``python -m benchmark.training.fork_server.server SOCKET``: imports what a run needs, once, and forks for every run asked for.

One thread only, so that a fork is safe; nothing touches a GPU before the fork. It lives until its standard
input ends, which is when the workflow that started it does, and until its last run has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from pathlib import Path

from benchmark.core.code_version import code_version
from benchmark.core.errors import BenchmarkError, tell
from benchmark.training.fork_server.protocol import environment

LONGEST_REQUEST = 2**20  # bytes
PATIENCE = 10.0  # seconds for a client to say what it wants
PR_SET_PDEATHSIG = 1


def main(path: str) -> None:
    """Serves at ``path`` until the standard input ends; clients that come before the imports are done wait."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    expected = environment()  # before the imports, some of which set variables
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
            gc.freeze()  # so that collections in the children do not copy the shared pages
            Server(listener, expected).serve()
        finally:
            Path(path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                Path(path).parent.rmdir()


class Server:
    """The loop over the standard input, new requests, and the ends of runs and of clients."""

    def __init__(self, listener: socket.socket, expected: dict[str, str]):
        self.listener, self.expected = listener, expected
        self.selector = selectors.DefaultSelector()
        self.runs = 0
        self.open = True

    def serve(self) -> None:
        """Returns when the standard input has ended and no run is left."""
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ, self._input)
        while self.open or self.runs:
            for key, _ in self.selector.select():
                if (
                    key.fd in self.selector.get_map()
                ):  # an earlier event of this round may have closed it
                    key.data()

    def _input(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            self.selector.unregister(sys.stdin.fileno())
            self.selector.unregister(self.listener)
            self.open = False

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        streams: list[int] = []
        try:
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            request = _read_line(connection)
            if len(streams) != 3 or not self._fits(request["environment"]):
                connection.close()
                return
            pid = self._fork(connection, request, streams)
            connection.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        except (OSError, ValueError, KeyError):
            connection.close()
            return
        finally:
            for stream in streams:
                os.close(stream)
        self._watch(connection, pid)

    def _fits(self, variables: dict[str, str]) -> bool:
        differing = {name for name, _ in environment(variables).items() ^ self.expected.items()}
        if differing:
            names = ", ".join(sorted(differing))
            print(
                f"warm start: a run with other variables starts by itself ({names})",
                file=sys.stderr,
            )
        return not differing

    def _fork(self, connection: socket.socket, request: dict, streams: list[int]) -> int:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _die_with_parent()
                self.selector.close()
                self.listener.close()
                connection.close()
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                status = _run(request)
            finally:
                with contextlib.suppress(OSError, ValueError):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        return pid

    def _watch(self, connection: socket.socket, pid: int) -> None:
        self.runs += 1
        handle = os.pidfd_open(pid)

        def ended() -> None:
            _, status = os.waitpid(pid, 0)
            self.selector.unregister(handle)
            os.close(handle)
            with contextlib.suppress(KeyError):
                self.selector.unregister(connection)
            with contextlib.suppress(OSError):
                code = os.waitstatus_to_exitcode(status)
                # a run killed by a signal ends its client as a shell would report it
                connection.sendall(
                    json.dumps({"status": code if code >= 0 else 128 - code}).encode() + b"\n"
                )
            connection.close()
            self.runs -= 1

        def left() -> None:
            self.selector.unregister(connection)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        self.selector.register(handle, selectors.EVENT_READ, ended)
        self.selector.register(connection, selectors.EVENT_READ, left)


def _run(request: dict) -> int:
    """Trains in the child; returns the exit status that ``python -m benchmark train`` would have."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    from benchmark.training.attempt import attempt

    try:
        out = None if request["out"] is None else Path(request["out"])
        return attempt(Path(request["spec"]), out, request["started"])
    except BenchmarkError as error:
        return tell(error)
    except BaseException:  # whatever ends a run, its log must say so
        traceback.print_exc()
        return 1


def _import_everything() -> None:
    """Imports what runs import, so that the children find it there; only the optimiser's first use loads dynamo."""
    import faiss  # noqa: F401
    import torch

    from benchmark.losses import LOSSES
    from benchmark.models.vision_ops import prepare_torchvision
    from benchmark.training import attempt  # noqa: F401

    prepare_torchvision()
    import timm  # noqa: F401

    for entry in LOSSES:
        entry.target  # noqa: B018 - resolving a name imports its module
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])


def _read_line(connection: socket.socket) -> dict:
    content = b""
    while not content.endswith(b"\n"):
        part = connection.recv(65536)
        if not part or len(content) > LONGEST_REQUEST:
            raise ValueError("no whole request")
        content += part
    return json.loads(content)


def _die_with_parent() -> None:
    """Asks Linux to kill this process when the server goes, as its client would start the run again."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
