"""A Ctrl-C is not lost, and a worker leaves it to its parent from its first moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from multiprocessing import get_context, resource_tracker

import pytest
from workplace import STUCK

from benchmark.core.interrupts import STOP_SIGNALS, held_back, obey_parent_alone


def worker(answers):
    obey_parent_alone()
    answers.put(os.getpid())
    signal.pause()


def signal_from_another(pid):
    """Send all signals to stop by a process that is not the parent of the one that gets them."""
    for number in STOP_SIGNALS:
        subprocess.run(["kill", f"-{int(number)}", str(pid)], check=True)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def idle_worker(request):
    """Yield a worker that got signals while it started; a spawned one imports a while then."""
    context = get_context(request.param)
    answers = context.SimpleQueue()
    process = context.Process(target=worker, args=(answers,), daemon=True)
    resource_tracker.ensure_running()
    with held_back():
        process.start()
    signal_from_another(process.pid)
    assert answers.get() == process.pid
    yield process
    process.kill()
    process.join()


def test_a_worker_ends_by_its_parents_sigterm_alone(idle_worker):
    signal_from_another(idle_worker.pid)
    idle_worker.join(0.5)
    assert idle_worker.is_alive()
    idle_worker.terminate()
    idle_worker.join(STUCK)
    assert idle_worker.exitcode == 0


ORPHAN = """
import os, signal
from multiprocessing import get_context
from benchmark.core import interrupts

def work():
    interrupts.PARENT_CHECK = 0.1
    interrupts.obey_parent_alone()
    os.write(1, b"here")
    signal.pause()

get_context("fork").Process(target=work).start()
signal.pause()
"""


def test_a_worker_whose_parent_was_killed_ends():
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.read(4) == b"here"
        parent.kill()
        parent.communicate(timeout=STUCK)  # ends when no process holds the other end


def test_who_starts_processes_hears_the_interrupt_afterwards():
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        started = True
    assert started


IN_A_CALLBACK = """
import os, signal, sys, time, weakref
from benchmark.core.interrupts import keep_interrupts

class Thing: pass

def callback(_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass

{keep}
thing = Thing()
reference = weakref.ref(thing, callback)
try:
    del thing
    time.sleep(2)
    print("not heard")
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.parametrize(
    ("keep", "told", "said"),
    [("keep_interrupts()", "heard\n", ""), ("", "not heard\n", "Exception ignored")],
    ids=["kept", "as Python does"],
)
def test_an_interrupt_in_a_callback_is_heard_later_and_says_nothing(keep, told, said):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK.format(keep=keep)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == told
    assert done.stderr.startswith(said)
    assert bool(done.stderr) == bool(said)
