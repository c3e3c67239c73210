"""Real file systems that are full or read-only: small ones in memory, which only root may mount."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.records import LOG, RESULT

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("mount") is None,
        reason="only root may mount file systems",
    ),
]
SPEC = tiny_spec(training={"epochs": 1, "checkpoint_seconds": 0.0})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Returns a function that mounts, or mounts again with other options, a file system in
    memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def mount(options: str) -> Path:
        options = f"remount,{options}" if mounted else options
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)],
            capture_output=True,
            check=False,
        )
        if done.returncode and not mounted:
            pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
        assert done.returncode == 0, done.stderr
        mounted.append(options)
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def train(path: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "benchmark", "train", "--spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def train_logged(path: Path) -> tuple[int, str]:
    """Returns the exit status and the log, which lies beside the run, as in the workflow."""
    log = path.with_name(LOG)
    command = [sys.executable, "-m", "benchmark", "train", "--spec", str(path)]
    with open(log, "wb") as stream:
        done = subprocess.run(
            command, stdout=stream, stderr=subprocess.STDOUT, timeout=300, check=False
        )
    return done.returncode, log.read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Returns the folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert train(write_spec_in(folder, SPEC)).returncode == 0
    return folder


def same(folder: Path, whole: Path) -> bool:
    return (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes() and curve(
        folder
    ) == curve(whole)


# The sizes let the run fail at its first checkpoint, at its second (beside the first), and in its
# last writes.
@pytest.mark.parametrize("size", ["64k", "2m", "6m"])
def test_a_full_disk_is_one_clear_error_and_the_run_continues_when_there_is_room(size, disk, whole):
    path = write_spec_in(disk(f"size={size}") / "run", SPEC)
    status, log = train_logged(path)
    assert status == 2
    last = log.splitlines()[-1]
    assert last.startswith("error: cannot write") and "free some space" in last
    assert "Traceback" not in log
    assert not (path.parent / RESULT).exists()
    disk("size=64m")
    assert train_logged(path)[0] == 0
    assert same(path.parent, whole)


def test_a_disk_without_room_for_a_word_ends_the_run_with_the_same_status(disk, whole):
    path = write_spec_in(disk("size=64k") / "run", SPEC)
    filler = path.with_name("filler")
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    assert train_logged(path) == (2, "")
    filler.unlink()
    disk("size=64m")
    assert train_logged(path)[0] == 0
    assert same(path.parent, whole)


def test_a_read_only_disk_is_one_clear_error_before_training(disk, whole):
    path = write_spec_in(disk("size=64m") / "run", SPEC)
    disk("ro")
    done = train(path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write") and "Read-only file system" in done.stderr
    assert "epoch" not in done.stdout
    disk("rw")
    assert train(path).returncode == 0
    assert same(path.parent, whole)
