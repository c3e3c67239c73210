"""SIGTERM while Snakemake's scheduler holds its own lock does not stop it for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

SIGNAL = """
import os, signal, threading
from types import SimpleNamespace

from snakemake.scheduling.job_scheduler import JobScheduler
from benchmark.study.interrupt import let_signals_in

scheduler = SimpleNamespace(_lock=threading.Lock(), _open_jobs=threading.Semaphore(0))
{mend}
signal.signal(signal.SIGTERM, lambda *_: JobScheduler.exit_gracefully(scheduler))
with {held}:
    os.kill(os.getpid(), signal.SIGTERM)
print(scheduler._user_kill, scheduler._open_jobs.acquire(timeout=5))
"""


@pytest.mark.parametrize("held", ["scheduler._lock", "scheduler._open_jobs._cond"])
def test_a_signal_is_handled_while_the_scheduler_holds_a_lock(held):
    command = [sys.executable, "-c", SIGNAL.format(mend="let_signals_in(scheduler)", held=held)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "graceful True\n", done.stderr


def test_snakemake_has_these_locks():
    """Where it does without them one day, the mend can go."""
    names = "scheduler._lock", "scheduler._open_jobs._cond"
    for held in names:
        command = [sys.executable, "-c", SIGNAL.format(mend="", held=held)]
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=6, check=False)
