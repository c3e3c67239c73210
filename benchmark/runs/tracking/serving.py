"""MLflow's own server on the local store: its command, its environment, and its end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.core.interrupts import handling_stop_signals, held_back
from benchmark.runs.tracking.store import (
    ARTIFACTS,
    DATABASE,
    TrackingError,
    connect,
    is_own,
    reach,
    speaking_plainly,
    tracking_uri,
)

LOOPBACK = "127.0.0.1"
SECONDS_TO_END = 5.0


def server_command(results: Path, port: int) -> list[str]:
    """Return the command of a UI on the local store; raise TrackingError without store or port.

    The store is opened once: of a damaged one the server would say fifty lines.
    """
    reach(results)
    uri = tracking_uri(results)
    if is_own(uri, results) and not (Path(results) / DATABASE).exists():
        raise TrackingError(
            f"{Path(results) / DATABASE} does not exist; run a study, or import one with "
            "'python -m benchmark track import STUDY'"
        )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise TrackingError(
                f"port {port} cannot be used ({error.strerror}); choose another with --port"
            ) from error
    with speaking_plainly(results):
        connect(results).search_experiments()
    artifacts = (Path(results) / ARTIFACTS).resolve().as_uri()
    options = ["--backend-store-uri", uri, "--artifacts-destination", artifacts, "--host", LOOPBACK]
    return [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        *options,
        "--port",
        str(port),
        "--workers",
        "1",
    ]


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a small local MLflow server: no telemetry, no job consumers."""
    return {
        **environment,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def serve(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a server until it ends or a signal ends it; return its status, 0 after a signal.

    It is in a group of its own, which a terminal's Ctrl-C does not reach: MLflow would answer with
    a traceback until it has imported all it needs.
    """

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    process = None
    with handling_stop_signals(stop):
        try:
            with held_back():
                process = subprocess.Popen(command, env=environment, process_group=0)
            return process.wait()
        except KeyboardInterrupt:
            if process is not None:
                _end(process)
            return 0


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its children; a second signal or some seconds later they are killed."""
    for number, seconds in ((signal.SIGTERM, SECONDS_TO_END), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except ProcessLookupError:
            return
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
