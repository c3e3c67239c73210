"""MLflow's own server on the local store: its command, its environment, and its end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from benchmark.core.interrupts import handling_stop_signals
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
LOOK_SECONDS = 0.1


def server_command(results: Path, port: int) -> list[str]:
    """Return the command of a UI on the local store; raise TrackingError without store or port.

    The store is opened once: of a damaged one the server would say fifty lines.
    """
    reach(results)
    uri = tracking_uri(results)
    own, database = is_own(uri, results), Path(results) / DATABASE
    if own and not database.exists():
        raise TrackingError(
            f"{database} does not exist; run a study, or import one with "
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
    if not own or database.stat().st_size:  # an empty one is made by MLflow
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
    a traceback until it has imported all it needs. A second signal, or five seconds, kill it.
    """
    signals: list[float] = []
    with handling_stop_signals(lambda *_: signals.append(time.monotonic())):
        process = subprocess.Popen(command, env=environment, process_group=0)
        told = False
        while process.poll() is None:
            if len(signals) > 1 or (signals and time.monotonic() > signals[0] + SECONDS_TO_END):
                os.killpg(process.pid, signal.SIGKILL)
            elif signals and not told:
                os.killpg(process.pid, signal.SIGTERM)
                told = True
            time.sleep(LOOK_SECONDS)
        with suppress(ProcessLookupError):  # what it has left behind
            os.killpg(process.pid, signal.SIGKILL)
    return 0 if signals else process.returncode
