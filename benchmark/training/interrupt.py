"""SIGTERM means: save and leave. Schedulers send it before they take a machine away."""

from __future__ import annotations

import signal

# EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 75


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The run was asked to stop and has saved its state."""


class StopRequest:
    """Notes SIGTERM while the context is open, so that the loop can stop between two steps."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: object = None

    def __enter__(self) -> StopRequest:
        self._previous = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._previous)

    def _note(self, *_: object) -> None:
        self.requested = True
