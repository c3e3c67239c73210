"""Signals to stop, which a scheduler and a terminal send to every process.

A program that trains records the signal and stops between two steps (``StopRequest``). A program
that starts commands passes the signal on (``handling_stop_signals``). A worker ignores the signal
and obeys its parent (``held_back``, ``obey_parent_alone``).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

INTERRUPTS = (signal.SIGINT, signal.SIGHUP)
# sent by a scheduler, by Ctrl-C, and by a terminal that is closed
STOP_SIGNALS = (signal.SIGTERM, *INTERRUPTS)
SECONDS_LATER = 0.05
PARENT_CHECK = 5.0  # seconds between two checks of a worker whether its parent is alive


@contextmanager
def handling_stop_signals(handler: Callable[[int, Any], None]) -> Iterator[dict[int, Any]]:
    """Call ``handler`` for signals to stop, and restore the former handlers at the end.

    Yield the former handlers. Signals that this process ignores (after nohup, for example) stay
    ignored.
    """
    before: dict[int, Any] = {}
    number: int
    for number in STOP_SIGNALS:
        former = signal.getsignal(number)
        if former != signal.SIG_IGN:
            before[number] = former
            signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def held_back() -> Iterator[None]:
    """Hold signals to stop back from the workers that the block starts.

    A worker receives these signals after it has called ``obey_parent_alone``. Without this, Python
    would answer a signal with a traceback while the worker starts. This process itself receives the
    signals at the end of the block, or earlier if it has other threads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # inside: this call raises the interrupt of a signal that came just before it
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def obey_parent_alone(*_: object) -> None:
    """Ignore signals to stop in a worker of ``multiprocessing``, except a SIGTERM of its parent.

    The parent needs the results of its workers until the parent has saved its state. SIGTERM stays
    held back, and a thread checks which process sent it. The worker also ends when its parent has
    ended.
    """
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    sender = 0
    while sender != parent.pid and parent.is_alive():
        received = signal.sigtimedwait([signal.SIGTERM], PARENT_CHECK)
        sender = received.si_pid if received else 0
    os._exit(0)


def keep_interrupts() -> None:
    """Repeat a Ctrl-C that arrived inside a callback, for example of a weak reference.

    Python prints such a KeyboardInterrupt and ignores it.
    """
    others = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            others(unraisable)
            return
        again = threading.Timer(SECONDS_LATER, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        with suppress(RuntimeError):  # the program is ending
            again.start()

    sys.unraisablehook = hook


# EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 75


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The run was asked to stop and has saved its state."""


class StopRequest(ExitStack):
    """Records a signal to stop while the context is open, so that a run stops between two steps.

    A second Ctrl-C interrupts at once.
    """

    requested = False
    _answer: Callable[[], object] = bool  # also called at the first signal

    def __enter__(self) -> StopRequest:
        self._before = self.enter_context(handling_stop_signals(self._note))
        return self

    @contextmanager
    def answered_by(self, save: Callable[[], object]) -> Iterator[None]:
        """Call ``save`` at a signal inside the block, which may take long to end."""
        self._answer = save
        try:
            yield
        finally:
            self._answer = bool

    def _note(self, number: int, _: Any) -> None:
        first = not self.requested
        self.requested = True
        if number == signal.SIGINT:
            signal.signal(number, self._before[number])
        if first:
            self._answer()
