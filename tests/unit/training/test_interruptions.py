"""A run that dies around any of its writes continues to the same bits.

The deterministic sibling of ``tests/stress``, where processes are killed: here every call that
brings something to the disk raises, once before it has done its work and once after.
"""

from __future__ import annotations

import functools
import itertools
import os

import numpy as np
import pytest
import torch
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.records import METRICS, NEIGHBOURS, PROVENANCE, QUERIES, RESULT, SPEC
from benchmark.training.run import train
from benchmark.training.state import CHECKPOINT

WRITES = ((torch, "save"), (np, "savez_compressed"), (os, "fsync"), (os, "replace"), (os, "rmdir"))
# Noise inside the loss, a memory, and a checkpoint after each of the few steps.
SPEC_OF = functools.partial(
    tiny_spec, "blackbox_ap", memory={"size": -1}, training={"epochs": 1, "checkpoint_seconds": 0.0}
)


class Died(BaseException):
    """Stands for the end of the process: no handler of errors may stop it."""


def die_at(number: int, after: bool, patch: pytest.MonkeyPatch) -> None:
    """Make the ``number``-th write from now on raise, before it or after it."""
    calls = itertools.count(1)

    def mortal(function):
        @functools.wraps(function)
        def call(*arguments, **keywords):
            last = next(calls) == number
            if last and not after:
                raise Died
            result = function(*arguments, **keywords)
            if last:
                raise Died
            return result

        return call

    for module, name in WRITES:
        patch.setattr(module, name, mortal(getattr(module, name)))


def survives(path, number, after, monkeypatch) -> bool:
    """Return whether an attempt at the run ended before its ``number``-th write."""
    with monkeypatch.context() as patch:
        die_at(number, after, patch)
        try:
            train(path)
        except Died:
            return False
    return True


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(write_spec_in(folder, SPEC_OF()))
    return folder


def same(folder, whole) -> bool:
    return (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes() and curve(
        folder
    ) == curve(whole)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_that_dies_at_one_write_after_the_other_ends_with_the_same_bits(
    after, whole, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, SPEC_OF())
    deaths = next(
        number - 1 for number in itertools.count(1) if survives(path, number, after, monkeypatch)
    )
    assert deaths >= 5
    assert same(tmp_path, whole)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        SPEC,
        RESULT,
        METRICS,
        PROVENANCE,
        NEIGHBOURS,
        QUERIES,
    }


def test_a_run_may_die_before_and_after_each_of_its_files_takes_its_place(
    whole, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, SPEC_OF())
    replace = os.replace
    for name, after in itertools.product(
        (CHECKPOINT, METRICS, NEIGHBOURS, QUERIES, PROVENANCE, RESULT), (False, True)
    ):

        def mortal(source, target, name=name, after=after):
            if after or target != tmp_path / name:
                replace(source, target)
            if target == tmp_path / name:
                raise Died

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", mortal)
            with pytest.raises(Died):
                train(path)
    assert (tmp_path / RESULT).exists()
    assert (tmp_path / CHECKPOINT).exists()
    train(path)
    assert same(tmp_path, whole)
    assert not (tmp_path / CHECKPOINT).parent.exists(), "what the last death left is tidied up"


def test_what_a_killed_writer_left_is_gone_when_the_run_is_finished(whole, tmp_path):
    path = write_spec_in(tmp_path, SPEC_OF())
    for name in (CHECKPOINT, RESULT):
        left = (tmp_path / name).parent / f".{(tmp_path / name).name}.x1y2z3a4"
        left.parent.mkdir(exist_ok=True)
        left.write_bytes(b"half of it")
    train(path)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        SPEC,
        RESULT,
        METRICS,
        PROVENANCE,
        NEIGHBOURS,
        QUERIES,
    }
