"""What else a machine does changes no bit: other runs beside it, other thread settings, the same
run twice at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tiny_runs import curve, tiny_spec, train_command, write_spec_in

from benchmark.core.records import RESULT

pytestmark = pytest.mark.stress
TRAINING = {"epochs": 2, "checkpoint_seconds": 0.0}
SPEC = tiny_spec("blackbox_ap", memory={"size": -1}, training=TRAINING)


def start(path: Path, **variables: str) -> subprocess.Popen:
    variables = {**os.environ, **variables}
    return subprocess.Popen(train_command(path), env=variables, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """Return the folder of a run that had the machine to itself."""
    folder = tmp_path_factory.mktemp("alone")
    assert start(write_spec_in(folder, SPEC)).wait(300) == 0
    return folder


def same(folder: Path, alone: Path) -> bool:
    files = [(each / RESULT).read_bytes() for each in (folder, alone)]
    return files[0] == files[1] and curve(folder) == curve(alone)


def test_runs_beside_each_other_and_under_other_variables_give_the_same_bits(alone, tmp_path):
    settings = [
        {},
        {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
    ]
    paths = [write_spec_in(tmp_path / str(number), SPEC) for number in range(len(settings))]
    runs = [start(path, **variables) for path, variables in zip(paths, settings, strict=True)]
    assert [run.wait(600) for run in runs] == [0] * len(settings)
    assert all(same(path.parent, alone) for path in paths)


def test_one_run_started_twice_at_once_gives_its_bits(alone, tmp_path):
    path = write_spec_in(tmp_path, SPEC)
    runs = [start(path), start(path)]
    statuses = [run.wait(600) for run in runs]
    assert 0 in statuses
    assert start(path).wait(300) == 0
    assert same(tmp_path, alone)
