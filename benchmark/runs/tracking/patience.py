"""How long a server may take: for each call as a whole, not only between two of its bytes."""

import contextlib
import functools
import http.client
import resource
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from benchmark.core.errors import RunError

# MLflow's own defaults block up to 4 minutes a call on a dead server, 20 on one without answers.
PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
PROBE_SECONDS = 10.0
LOOK_SECONDS = 1.0
MOST_BYTES = 2 * 2**30  # that an answer may make the process grow by


def be_patient(environment: Any) -> None:
    """Bound the time of MLflow's calls, unless the user has set the bounds."""
    for name, value in PATIENCE.items():
        environment.setdefault(name, value)


def call_seconds() -> float:
    """Return how long a call may last: twice what all its attempts may wait for a byte."""
    from mlflow.environment_variables import (
        MLFLOW_HTTP_REQUEST_MAX_RETRIES,
        MLFLOW_HTTP_REQUEST_TIMEOUT,
    )

    attempts = 1 + MLFLOW_HTTP_REQUEST_MAX_RETRIES.get()
    return float(2 * attempts * MLFLOW_HTTP_REQUEST_TIMEOUT.get())


def unreachable(uri: str) -> str:
    """Return why the server does not answer within ``PROBE_SECONDS``; "" when it does."""
    try:
        with (
            within(2 * PROBE_SECONDS),
            urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=PROBE_SECONDS),
        ):
            return ""
    except urllib.error.HTTPError:
        return ""  # it speaks HTTP: a proxy that wants credentials, or has no such page
    except (OSError, ValueError, http.client.HTTPException, RunError) as error:
        return str(getattr(error, "reason", error))


class BoundedClient:
    """An ``MlflowClient`` whose calls end within ``seconds``, whatever the server sends.

    MLflow bounds the wait for the next byte alone: an answer that drips, or that asks to come back
    in a year, would hold a call for ever.
    """

    def __init__(self, client: Any, seconds: float):
        self._client, self._seconds = client, seconds

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def bounded(*arguments: Any, **options: Any) -> Any:
            with within(self._seconds):
                return value(*arguments, **options)

        return bounded


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise RunError when the block takes longer, or more memory than ``MOST_BYTES``.

    Only the main thread can be called back; elsewhere nothing is bounded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end, peak = time.monotonic() + seconds, _peak_bytes()

    def look(*_: object) -> None:
        if time.monotonic() > end:
            raise RunError(f"its answer did not end within {seconds:g} s")
        if _peak_bytes() - peak > MOST_BYTES:
            raise RunError(f"its answer is larger than {MOST_BYTES / 2**30:g} GB")

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, min(LOOK_SECONDS, seconds), LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
