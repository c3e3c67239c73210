"""Checkpoints: continued only by the very run that wrote them, read without executing anything."""

from __future__ import annotations

import os
import pickle

import pytest
import torch

from benchmark.training.state import CHECKPOINT, load_checkpoint, remove_checkpoint, save_checkpoint

IDENTITY = {
    "spec_digest": "a1",
    "code_version": "1",
    "dataset_fingerprint": "data",
    "platform": "here",
}


def test_state_comes_back_whole(tmp_path):
    state = {"epoch": 1, "position": 7, "weights": torch.arange(3.0), "records": [{"loss": 0.1}]}
    save_checkpoint(tmp_path, IDENTITY, state)
    loaded, message = load_checkpoint(tmp_path, IDENTITY)
    assert loaded["records"] == [{"loss": 0.1}]
    assert torch.equal(loaded["weights"], state["weights"])
    assert "epoch 2, step 7" in message


@pytest.mark.parametrize("key", ["spec_digest", "code_version"])
def test_checkpoint_of_another_spec_or_code_is_not_continued(tmp_path, key):
    save_checkpoint(tmp_path, IDENTITY, {"epoch": 0, "position": 0})
    state, message = load_checkpoint(tmp_path, {**IDENTITY, key: "other"})
    assert state is None
    assert "starting from the beginning" in message
    assert "other" in message


@pytest.mark.parametrize("size", [0, 10, 200])
def test_torn_checkpoint_is_a_fresh_start(tmp_path, size):
    save_checkpoint(tmp_path, IDENTITY, {"epoch": 0, "position": 0, "weights": torch.zeros(100)})
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:size])
    state, message = load_checkpoint(tmp_path, IDENTITY)
    assert state is None
    assert "cannot be read" in message


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def test_foreign_objects_are_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / CHECKPOINT
    path.parent.mkdir()
    torch.save({"identity": IDENTITY, "state": Evil()}, path, pickle_module=pickle)
    state, _ = load_checkpoint(tmp_path, IDENTITY)
    assert state is None
    assert not (tmp_path / "executed").exists()


def test_removing_leaves_no_empty_folder(tmp_path):
    save_checkpoint(tmp_path, IDENTITY, {"epoch": 0, "position": 0})
    remove_checkpoint(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_states_that_is_a_link_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    run = tmp_path / "run"
    run.mkdir()
    (run / CHECKPOINT).parent.symlink_to(tmp_path / "elsewhere")
    save_checkpoint(run, IDENTITY, {"epoch": 0, "position": 0})
    remove_checkpoint(run)
    assert (run / CHECKPOINT).parent.is_symlink()
    assert not (run / CHECKPOINT).exists()
