"""A signal means: save and leave. Schedulers send one before they take a machine away."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any

from benchmark.core.gpus import take_gpus
from benchmark.core.interrupts import handling_stop_signals

# EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 75


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The run was asked to stop and has saved its state."""


class StopRequest(contextlib.ExitStack):
    """Notes a signal to stop while the context is open, so that a run stops between two steps.

    A second Ctrl-C interrupts at once.
    """

    requested = False

    def __enter__(self) -> StopRequest:
        self._before = self.enter_context(handling_stop_signals(self._note))
        return self

    def _note(self, number: int, _: Any) -> None:
        self.requested = True
        if number == signal.SIGINT:
            signal.signal(number, self._before[number])


def attempt(spec: Path, out: Path | None, started: float) -> int:
    """Train and return the exit status: 0, or 75 when the run was stopped and can be continued.

    ``started`` is the command's ``time.monotonic()``, for the start-up time on record. Errors are
    raised.
    """
    from benchmark.training.run import train

    take_gpus(1)
    try:
        train(spec, out, started=started)
    except Interrupted as event:
        print(event)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        print("stopped at once; the same command continues from the last checkpoint")
        return EXIT_INTERRUPTED
    return 0
