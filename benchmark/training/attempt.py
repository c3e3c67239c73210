"""One attempt at a run, as a command does it: what happened becomes an exit status."""

from __future__ import annotations

from pathlib import Path

from benchmark.training.interrupt import EXIT_INTERRUPTED, Interrupted
from benchmark.training.run import train


def attempt(spec: Path, out: Path | None, started: float) -> int:
    """Train and return 0, or 75 when the run was stopped on request and can be continued.

    ``started`` is the command's ``time.monotonic()``, for the start-up time on record. Errors are raised.
    """
    try:
        train(spec, out, started=started)
    except Interrupted as event:
        print(event)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:  # Ctrl-C while data and network are being prepared
        print("stopped on request before the first step")
        return EXIT_INTERRUPTED
    return 0
