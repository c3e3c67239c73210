"""Time limits of one input: computing and waiting end in TimeoutError."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

COMPUTING = 20.0  # seconds of a processor, however busy the machine is
WAITING = 200.0  # seconds of the clock


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError in the block when it computes or waits for too long."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {COMPUTING:.0f} s of computing or {WAITING:.0f} s in all")

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, COMPUTING),
        (signal.SIGALRM, signal.ITIMER_REAL, WAITING),
    )
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
