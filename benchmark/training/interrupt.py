"""SIGTERM, SIGINT and SIGHUP mean: save and leave.

Schedulers send the first before they take a machine away, a terminal the second on Ctrl-C and the
third when it is closed.
"""

from __future__ import annotations

import signal
from types import TracebackType

# EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 75
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The run was asked to stop and has saved its state."""


class StopRequest:
    """Notes the signals while the context is open, so that the loop can stop between two steps."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopRequest:
        self._previous = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)  # type: ignore[arg-type]

    def _note(self, *_: object) -> None:
        self.requested = True
