"""What Ctrl-C and a closed terminal do to a workflow."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable


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
        self.happened = False
        self._last_words = last_words
        self._local = local
        self._numbers = [signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            self._numbers.append(signal.SIGHUP)
        for number in self._numbers:
            signal.signal(number, self._note)
        atexit.register(self._say)

    def _note(self, received: int, _: object) -> None:
        self.happened = True
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
