"""A terminal sends Ctrl-C to every process, also to one that has just been started by another.

Python answers with a traceback until the process says what it does. So interrupts are held back
while processes are started, and these ignore them: their parent ends them. A scheduler sends
SIGTERM in the same way.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

INTERRUPTS = (signal.SIGINT, signal.SIGHUP)
# A scheduler's, a terminal's Ctrl-C, and that of a terminal which is closed.
STOP_SIGNALS = (signal.SIGTERM, *INTERRUPTS)
SECONDS_LATER = 0.05


@contextmanager
def handling_stop_signals(handler: Callable[[int, Any], None]) -> Iterator[dict[int, Any]]:
    """Call ``handler`` for signals to stop; give the handlers before, which come back in the end.

    Signals that this process was told to ignore (by nohup, say) stay ignored.
    """
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    before: dict[int, Any] = {
        number: old for number, old in handlers.items() if old != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield before
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def held_back(signals: Sequence[signal.Signals] = INTERRUPTS) -> Iterator[None]:
    """Hold interrupts back from processes started in the block until they ``ignore_interrupts``.

    This process hears them at the end of the block, or earlier where it has other threads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # inside: one that came just before is raised by this call, which has blocked them by then
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def held_back_from_workers() -> Iterator[None]:
    """Do as ``held_back``, where the block starts processes of ``multiprocessing``."""
    resource_tracker.ensure_running()  # the first of them would let interrupts through
    with held_back():
        yield


def keep_interrupts() -> None:
    """Send a Ctrl-C again that came in a callback, of a weak reference say.

    Python can raise nothing there: it prints the traceback and goes on, as if nobody had asked.
    """
    others = sys.unraisablehook

    def hook(found: sys.UnraisableHookArgs) -> None:
        if found.exc_type is not KeyboardInterrupt:
            others(found)
            return
        again = threading.Timer(SECONDS_LATER, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        with suppress(RuntimeError):  # the program is at its end
            again.start()

    sys.unraisablehook = hook


def ignore_interrupts() -> None:
    """Leave interrupts to the parent."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def obey_parent_alone(*_: object) -> None:
    """Ignore signals to stop in a worker of a loader, but for its parent's SIGTERM.

    The parent needs batches until it has saved its state. It starts the worker while it holds
    ``STOP_SIGNALS`` back; SIGTERM stays so, and a thread looks who sent it.
    """
    ignore_interrupts()
    threading.Thread(target=_end_by_parent, daemon=True).start()


def _end_by_parent() -> None:
    while signal.sigwaitinfo([signal.SIGTERM]).si_pid != os.getppid():
        pass
    os._exit(0)


def leave_interrupts_to_parent() -> None:
    """Ignore interrupts in a worker of ``multiprocessing``, and end it when its parent is gone."""
    ignore_interrupts()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def handle_in_a_thread(number: int) -> None:
    """Let the handler of a signal run in a thread of its own from now on.

    Snakemake's takes two locks that are not reentrant: where the signal comes while the scheduler
    itself holds one, as when its jobs have just ended by the same signal, it would wait for ever.
    """
    handle = signal.getsignal(number)
    assert callable(handle)
    signal.signal(number, lambda *received: threading.Thread(target=handle, args=received).start())


class Interrupt:
    """Ctrl-C or SIGHUP: the first ends the workflow in good order, others do not disturb that.

    On this machine the runs under way receive the signal from the terminal themselves and save
    their state; Snakemake takes it as SIGTERM: it starts nothing more and registers what its jobs
    still finish. Jobs on a cluster are cancelled, which is what Snakemake does on SystemExit.
    """

    def __init__(self, last_words: Callable[[], str], *, local: Callable[[], bool]) -> None:
        """Watch from now on; ``last_words`` are printed when the process ends after Ctrl-C.

        ``local`` says whether jobs run on this machine; Snakemake knows it when it schedules them.
        """
        self.happened = 0  # the signal
        self._last_words = last_words
        self._local = local
        self._numbers = [signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            self._numbers.append(signal.SIGHUP)
        for number in self._numbers:
            signal.signal(number, self._note)
        atexit.register(self._say)

    def _note(self, received: int, _: object) -> None:
        self.happened = received
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)
        # Snakemake handles SIGTERM once it schedules jobs
        has_jobs = signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        if not (has_jobs and self._local()):
            raise SystemExit(128 + received)
        os.kill(os.getpid(), signal.SIGTERM)

    def _say(self) -> None:
        if not self.happened:
            return
        try:
            words = self._last_words()
        except Exception:  # an import was interrupted, and what it left cannot be used
            words = "stopped; finished runs are kept, the same command continues"
        print(words, file=sys.stderr)


# EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 75


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """The run was asked to stop and has saved its state."""


class StopRequest(ExitStack):
    """Notes a signal to stop while the context is open, so that a run stops between two steps.

    A second Ctrl-C interrupts at once.
    """

    requested = False
    _answer: Callable[[], object] = bool  # to the first signal, besides the note

    def __enter__(self) -> StopRequest:
        self._before = self.enter_context(handling_stop_signals(self._note))
        return self

    @contextmanager
    def answered_by(self, save: Callable[[], object]) -> Iterator[None]:
        """Call ``save`` as soon as a signal comes in the block, which may take too long to end."""
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
