"""Start runs at once: a server process imports everything, and forks itself for each run.

Importing torch, timm and faiss takes longer than an epoch of a small study. So a workflow on one
machine keeps such a server, which has one thread and uses no GPU. A fork has the streams, folder
and environment of its command. The command passes signals to stop on to its fork, and the fork ends
when the command ends.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from typing import NoReturn

from benchmark.core.code_version import code_version
from benchmark.core.environment import FORK_SERVER, choose_kernels
from benchmark.core.interrupts import handling_stop_signals

VARIABLE = FORK_SERVER
OFF = "off"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ForkServer:
    """The server of one workflow.

    The workflow does not wait for the server. If the server fails, the workflow goes on without it.
    """

    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the server and let later commands find it; only on Linux."""
        if os.environ.get(VARIABLE) or sys.platform != "linux":
            return
        path = f"{tempfile.mkdtemp(prefix='benchmark-', dir='/tmp')}/socket"  # for its owner only
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)  # here, because a command may come before the server is ready
        listener.listen(128)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmark.training.fork_server", str(listener.fileno())],
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=os.environ | THREADS,
            start_new_session=True,  # a terminal's Ctrl-C is for the commands
        )
        listener.close()
        os.environ[VARIABLE] = path

    def stop(self) -> None:
        """End the server in any of its states; forks go on."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process = None
            os.environ[VARIABLE] = OFF


def train_forked(started: float) -> int | None:
    """Run this command, which started at ``started``, in a fork of the server.

    Return its exit status, or None if no server takes the command.
    """
    if not THREADS.items() <= os.environ.items():  # all runs of the server have one thread
        return None
    request = [[*sys.argv[1:], "--started", repr(started)], os.getcwd(), dict(os.environ)]
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(os.environ.get(VARIABLE, OFF))
        socket.send_fds(connection, [json.dumps(request).encode()], (0, 1, 2))
        pid = int(connection.recv(99))
    except (OSError, ValueError):
        return None

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    status = b""
    with connection, handling_stop_signals(pass_on), contextlib.suppress(OSError):
        status = connection.recv(99)
    return int(status or 128 + signal.SIGKILL)  # no answer: the fork was killed


def serve(listener: socket.socket) -> None:
    """Fork for each connection until the standard input ends; early connections wait."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for a fork
    choose_kernels()
    with listener:
        # the imports of runs; dynamo is loaded at the first use of an optimiser
        import faiss  # noqa: F401
        import torch

        from benchmark.datasets import DATASETS
        from benchmark.input.samplers import SAMPLERS
        from benchmark.losses import LOSSES
        from benchmark.models.backbone import prepare_torchvision

        prepare_torchvision()
        import timm  # noqa: F401

        from benchmark.training import run  # noqa: F401

        importlib.import_module("benchmark.__main__")
        entries = (*DATASETS, *SAMPLERS, *LOSSES)
        code_version(*(entry.target.__module__ for entry in entries))  # of the imported code
        torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])
        gc.freeze()  # garbage collection in a fork would copy the shared pages
        while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
            # without memory for a fork, the connection closes and the command trains by itself
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                if os.fork() == 0:
                    listener.close()
                    _be_command(connection)
        shutil.rmtree(os.path.dirname(listener.getsockname()))


def _be_command(connection: socket.socket) -> NoReturn:
    status = 1
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        request, streams, _, _ = socket.recv_fds(connection, 2**18, 3)
        sys.argv[1:], folder, environment = json.loads(request)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        sys.stdout = open(1, "w")  # noqa: SIM115
        sys.stderr = open(2, "w", 1)  # noqa: SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment, **{VARIABLE: OFF})
        tempfile.tempdir = None  # these variables may name another folder
        # SIGIO ends this process when the client closes its end or is gone
        fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
        connection.send(str(os.getpid()).encode())
        runpy.run_module("benchmark", run_name="__main__", alter_sys=True)  # ends with SystemExit
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # the log of a command must say what ended it
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            connection.send(str(status).encode())
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
