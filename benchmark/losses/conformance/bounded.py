"""Run checks in a process of its own, which cannot take longer than it is given."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from multiprocessing.connection import Connection
from typing import cast

from torch import multiprocessing

from benchmark.core.errors import BenchmarkError, RunError, not_ended_by_others
from benchmark.core.interrupts import handling_stop_signals
from benchmark.losses.conformance.check_outcomes import CheckOutcome

GRACE = 5.0  # seconds
LOADING = "loading"
Findings = Callable[[], Iterable[CheckOutcome | None]]


def outcomes_within(
    limit: float, source: str, checks: Sequence[str], findings: Findings
) -> Generator[CheckOutcome, None, None]:
    """Yield the outcome of each of ``checks`` of ``source``, from a process of its own.

    ``findings()`` yields None when the implementation is loaded, then an outcome for each check.
    The check during which ``limit`` seconds or the process end has failed, and is the last. Raise
    what ``findings`` raises, and RunError if loading does not end.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_examine, args=(sender, limit, findings))
    deadline = time.monotonic() + limit
    waiting = [LOADING, *checks]
    reason = f"no answer within {limit:g} s"
    with handling_stop_signals(signal.default_int_handler):
        process.start()
        group = cast(int, process.pid)
        try:
            sender.close()
            os.setpgid(group, group)  # with the processes that it starts
            while waiting and receiver.poll(max(0.0, deadline - time.monotonic())):
                answer = pickle.loads(receiver.recv_bytes())
                if isinstance(answer, BenchmarkError):
                    raise answer
                waiting.pop(0)
                if answer is not None:
                    yield answer
        except EOFError:
            reason = "it ended the process"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            process.join()
    if LOADING in waiting:
        raise RunError(f"{source}: {reason}, while it was loaded")
    if waiting:
        yield CheckOutcome(waiting[0], "failed", f"{reason}; later checks were not made")


def _examine(sender: Connection, limit: float, findings: Findings) -> None:
    """Send each finding; an error ends all."""
    # if nobody is left to end it
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=2)
    try:
        with not_ended_by_others():
            for answer in findings():
                sender.send_bytes(pickle.dumps(answer))
    except BenchmarkError as error:
        sender.send_bytes(pickle.dumps(error))
