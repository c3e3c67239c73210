"""What a signal to stop does to a workflow that has started no job yet."""

import signal
import subprocess
import sys

import pytest

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
