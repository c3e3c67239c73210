"""Runs side by side on one machine take different GPUs, and leave them when they end."""

from __future__ import annotations

import os

import pytest

from benchmark.core import environment as gpus
from benchmark.core.environment import VISIBLE, take_gpu, visible_gpus


@pytest.fixture(autouse=True)
def four(monkeypatch, tmp_path):
    """Four GPUs are visible, and no cluster gives them away."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(VISIBLE, "0,1,2,5")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(gpus, "_locks", [])


def test_each_run_takes_a_gpu_of_its_own_while_there_are_enough(monkeypatch):
    for name in ("0", "1", "2", "5"):
        assert take_gpu() == name
        assert os.environ[VISIBLE] == name
        monkeypatch.setenv(VISIBLE, "0,1,2,5")
    assert take_gpu() is None
    assert os.environ[VISIBLE] == "0,1,2,5"
    gpus._locks.clear()  # as the end of the processes does
    assert take_gpu() == "0"


def test_a_single_gpu_and_those_of_a_cluster_are_left_as_they_are(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert take_gpu() is None
    monkeypatch.delenv("SLURM_JOB_ID")
    for value in ("3", "", "-1"):
        monkeypatch.setenv(VISIBLE, value)
        assert take_gpu() is None


def test_what_nvidia_smi_lists_is_visible_where_no_variable_says_otherwise(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'; echo 'GPU 1: B (UUID: y)'\n")
    tool.chmod(0o755)
    monkeypatch.delenv(VISIBLE)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("PATH", "/nonexistent")
    assert visible_gpus() == []
