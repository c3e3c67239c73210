"""A terminal sends Ctrl-C to every process, also to one that has just been started by another.

Python answers with a traceback until the process says what it does. So interrupts are held back
while processes are started, and these ignore them: their parent ends them.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

INTERRUPTS = (signal.SIGINT, signal.SIGHUP)


@contextmanager
def held_back() -> Iterator[None]:
    """Hold interrupts back from processes started in the block until they ``ignore_interrupts``.

    This process hears them at the end of the block, or earlier where it has other threads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def held_back_from_workers() -> Iterator[None]:
    """Do as ``held_back``, where the block starts processes of ``multiprocessing``."""
    resource_tracker.ensure_running()  # the first of them would let interrupts through
    with held_back():
        yield


def ignore_interrupts() -> None:
    """Leave interrupts to the parent."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
