"""Ctrl-C while processes start: they say nothing, and the one that starts them hears it after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from multiprocessing import get_context

import pytest

from benchmark.core.interrupts import held_back, held_back_from_workers, ignore_interrupts

CHILD = """
import os, signal
print(os.getpid(), flush=True)
input()  # as long as its imports would take
from benchmark.core.interrupts import ignore_interrupts
ignore_interrupts()
os.kill(os.getpid(), signal.SIGINT)
print("alive")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_process_that_starts_does_not_hear_interrupts(number):
    with held_back():
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    os.kill(int(child.stdout.readline()), number)
    out, err = child.communicate("\n", timeout=60)
    assert (child.returncode, out, err) == (0, "alive\n", "")


def heard(answers):
    """Tell which interrupts a worker holds back and ignores, before and after it says so."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    ignore_interrupts()
    left = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    ignored = [signal.getsignal(number) == signal.SIG_IGN for number in (1, 2)]
    answers.put((sorted(held), sorted(left), ignored))


def test_a_worker_starts_with_interrupts_held_back():
    context = get_context("spawn")
    answers = context.Queue()
    with held_back_from_workers():
        worker = context.Process(target=heard, args=(answers,))
        worker.start()
    assert answers.get(timeout=60) == ([signal.SIGHUP, signal.SIGINT], [], [True, True])
    worker.join(60)


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
    assert done.stdout == told and done.stderr.startswith(said) and bool(done.stderr) == bool(said)


WORKFLOW = """
import os, signal, sys
from benchmark.core.interrupts import Interrupt

number = int(sys.argv[1])
if sys.argv[2:] == ["ignored"]:
    signal.signal(number, signal.SIG_IGN)
Interrupt(lambda: {}["words"] if sys.argv[2:] == ["none"] else "last words", local=lambda: True)
os.kill(os.getpid(), number)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_it_ends_with_its_last_words(number):
    done = subprocess.run(
        [sys.executable, "-c", WORKFLOW, str(int(number))], capture_output=True, text=True
    )
    assert done.returncode == 128 + number and done.stderr == "last words\n"


def test_one_that_is_to_outlive_its_terminal_does():
    done = subprocess.run(
        [sys.executable, "-c", WORKFLOW, str(int(signal.SIGHUP)), "ignored"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == ""


def test_words_that_cannot_be_made_any_more_are_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", WORKFLOW, str(int(signal.SIGINT)), "none"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "stopped; finished runs are kept, the same command continues\n"
