"""Tests only: a training process that notes in a file what it is doing, and is killed while it does
what was ordered.

Put on PYTHONPATH, with the file's path in STRESS_PHASE. The order lies beside it: ["evaluation", 2,
0.01, 9] means signal 9, 0.01 s after the second evaluation has begun. Any other signal than 9 goes
to the children of the process, too.
"""

import contextlib
import functools
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time

PATH = os.environ.get("STRESS_PHASE")


class _AfterImport(importlib.abc.MetaPathFinder):
    """Wrap what a run calls once ``benchmark.training.run`` has been imported."""

    def find_spec(self, name, path, target=None):
        if name != "benchmark.training.run":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _wrap_all(module)

        spec.loader.exec_module = exec_module
        return spec


def _wrap_all(run):
    from benchmark.training import loop

    for owner, name, phase in (
        (run, "build_components", "start"),
        (loop.Trainer, "_train_epoch", "step"),
        (loop.Trainer, "_evaluate", "evaluation"),
        (loop, "save_checkpoint", "checkpoint write"),
        (run, "write_neighbours", "final write"),
        (run, "write_outcome", "final write"),
        (run, "remove_checkpoint", "final write"),
    ):
        setattr(owner, name, _noting(phase, getattr(owner, name)))


def _noting(phase, function):
    @functools.wraps(function)
    def noted(*arguments, **keywords):
        before = _note(phase)
        try:
            return function(*arguments, **keywords)
        finally:
            _note(before)

    return noted


_current = "other"
_order = None  # phase, how often it is entered first, seconds after that, signal


def _note(phase):
    global _current
    before = _current
    _current = phase
    with open(PATH, "w") as stream:
        stream.write(phase)
    if phase != before:
        _die_in_time(phase)
    return before


def _die_in_time(phase):
    """Let another process kill this one in the phase and after the time that were ordered."""
    global _order
    if _order is None:
        with open(f"{PATH}.order") as stream:
            _order = json.load(stream)
    if phase != _order[0]:
        return
    _order[1] -= 1
    if _order[1] == 0:
        victim = os.getpid()
        if os.fork() == 0:
            try:
                time.sleep(_order[2])
                _signal_all(victim, _order[3])
            finally:
                os._exit(0)


def _signal_all(victim, number):
    """Send a signal to a process, and to its children but this one."""
    pids = [victim]
    if number != signal.SIGKILL:
        with open(f"/proc/{victim}/task/{victim}/children") as stream:
            pids += [int(pid) for pid in stream.read().split() if int(pid) != os.getpid()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


if PATH:
    sys.meta_path.insert(0, _AfterImport())
