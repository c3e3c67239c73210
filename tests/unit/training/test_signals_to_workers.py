"""A scheduler's signal reaches every process of a run: the workers of its loaders go on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from dataclasses import replace

import pytest
from archives import save
from long_lists import long_but
from tiny_runs import curve, held, tiny_spec, write_spec_in
from workplace import STUCK

from benchmark.core.interrupts import EXIT_INTERRUPTED, STOP_SIGNALS, Interrupted
from benchmark.core.records import METRICS, RESULT, DatasetChoice
from benchmark.input.tensors import FileInput
from benchmark.training import features, loop
from benchmark.training.run import train
from benchmark.training.state import CHECKPOINT, RunState

CROPS = {"augmentation": "crop_flip", "image_size": 32, "mean": [0.5], "std": [0.5], "workers": 2}
WHOLE = {**CROPS, "augmentation": "none"}
PART = 30  # images of a file of features


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    for number in range(144):
        save(root / f"class{number // 12:02d}" / f"{number}.jpg", seed=number, size=(44, 40))
    return DatasetChoice("folder", "folder", {"root": str(root)})


@pytest.fixture(scope="module")
def spec(images):
    made = tiny_spec(model={"channels": 3}, input=CROPS)
    return replace(made, dataset=images, batch_size=16)


@pytest.fixture(scope="module")
def whole(spec, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    train(write_spec_in(folder, spec))
    return folder


def signal_all(number):
    """Send a signal to this process and to its children, as one that is not their parent."""
    children = multiprocessing.active_children()
    assert len(children) >= 2  # the loaders' workers
    pids = [str(os.getpid()), *(str(child.pid) for child in children)]
    subprocess.run(["kill", f"-{int(number)}", *pids], check=True)


def assert_same(folder, whole):
    assert (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    assert curve(folder) == curve(whole)


@pytest.mark.parametrize("number", long_but([signal.SIGTERM], STOP_SIGNALS))
def test_a_training_whose_processes_all_get_a_signal_continues_to_the_same_bits(
    number, spec, whole, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, spec)
    count_step = RunState.count_step

    def and_signal(state, *facts):
        count_step(state, *facts)
        if state.step == 2:
            signal_all(number)

    with monkeypatch.context() as patch:
        patch.setattr(RunState, "count_step", and_signal)
        with pytest.raises(Interrupted, match="epoch 1, step 2"):
            train(path)
    train(path)
    assert_same(tmp_path, whole)


def signal_in_evaluation(monkeypatch, before=0):
    """Send SIGTERM once, behind the first batch of an evaluation, ``before`` of which go first."""
    eval_batches = FileInput.eval_batches
    begun = []

    def and_signal(self, *settings):
        begun.append(self)
        for batch in eval_batches(self, *settings):
            yield batch
            if len(begun) == before + 1:
                begun.append(self)
                signal_all(signal.SIGTERM)

    monkeypatch.setattr(FileInput, "eval_batches", and_signal)


def test_an_evaluation_that_gets_a_signal_ends_and_is_kept(spec, whole, tmp_path, monkeypatch):
    path = write_spec_in(tmp_path, spec)
    with monkeypatch.context() as patch:
        signal_in_evaluation(patch)
        with pytest.raises(Interrupted, match="epoch 2, step 0"):
            train(path)
    assert curve(tmp_path) == curve(whole)[:1]
    train(path)
    assert_same(tmp_path, whole)


def test_an_evaluation_that_is_killed_after_the_signal_costs_no_step(
    spec, whole, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, spec)

    def killed(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        signal_in_evaluation(patch)
        patch.setattr(loop, "measure", killed)
        with pytest.raises(MemoryError):
            train(path)
    steps = []
    count_step = RunState.count_step

    def noted(state, *facts):
        count_step(state, *facts)
        steps.append((state.epoch, state.position))

    monkeypatch.setattr(RunState, "count_step", noted)
    train(path)
    assert steps[0] == (1, 1)  # of the second epoch
    assert_same(tmp_path, whole)


def test_a_signal_in_the_last_evaluation_lets_the_run_end(spec, whole, tmp_path, monkeypatch):
    signal_in_evaluation(monkeypatch, before=1)
    train(write_spec_in(tmp_path, spec))
    assert_same(tmp_path, whole)
    assert not (tmp_path / CHECKPOINT).exists()


@pytest.fixture(scope="module")
def frozen(images, tmp_path_factory):
    """Return the folder of a run on features that nothing interrupted."""
    folder = tmp_path_factory.mktemp("frozen")
    made = tiny_spec(model={"channels": 3, "freeze_backbone": True}, input=WHOLE)
    path = write_spec_in(folder / "run", replace(made, dataset=images, batch_size=16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "PART", PART)
        patch.setenv("BENCHMARK_CACHE", str(folder / "cache"))
        train(path)
    return path.parent


def test_features_that_were_finished_are_kept(frozen, tmp_path, monkeypatch):
    monkeypatch.setattr(features, "PART", PART)
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "run" / "spec.json"
    path.parent.mkdir()
    path.write_bytes((frozen / "spec.json").read_bytes())
    with monkeypatch.context() as patch:
        signal_in_evaluation(patch)
        with pytest.raises(Interrupted, match="finished features are kept"):
            train(path)
    (kept,) = (tmp_path / "cache" / "features").glob("*/*.npz")
    before = kept.stat().st_mtime_ns
    train(path)
    assert kept.stat().st_mtime_ns == before
    assert_same(path.parent, frozen)


def test_a_group_of_processes_that_gets_sigterm_ends_with_status_75(spec, whole, tmp_path):
    with held(tmp_path, spec, until=METRICS) as (process, go_on):
        os.killpg(process.pid, signal.SIGTERM)
        go_on()
        assert process.wait(STUCK) == EXIT_INTERRUPTED
    assert (tmp_path / CHECKPOINT).exists()
    train(tmp_path / "spec.json")
    assert_same(tmp_path, whole)
