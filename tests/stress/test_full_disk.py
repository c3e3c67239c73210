"""Real file systems that are full: small ones in memory, which only root may mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_runs import curve, tiny_spec, train_command, write_spec_in

from benchmark.core.records import LOG, RESULT

NO_MOUNT = os.geteuid() != 0 or shutil.which("mount") is None
ROOT_ONLY = pytest.mark.skipif(NO_MOUNT, reason="only root may mount file systems")
pytestmark = [pytest.mark.stress, ROOT_ONLY]
SPEC = tiny_spec(training={"epochs": 1, "checkpoint_seconds": 0.0})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Yield what mounts, or mounts again with other options, a file system in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def mount(options: str) -> Path:
        options = f"remount,{options}" if mounted else options
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode and not mounted:
            pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
        assert done.returncode == 0, done.stderr
        mounted.append(options)
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def train(path: Path) -> tuple[int, str]:
    """Return the exit status and the log, which lies beside the run, as in the workflow."""
    log = path.with_name(LOG)
    with open(log, "wb") as stream:
        streams = {"stdout": stream, "stderr": subprocess.STDOUT}
        done = subprocess.run(train_command(path), timeout=300, check=False, **streams)
    return done.returncode, log.read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Return the folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert train(write_spec_in(folder, SPEC))[0] == 0
    return folder


# The sizes let the run fail at its first checkpoint, at its second (beside the first), and in its
# last writes.
@pytest.mark.parametrize("size", ["64k", "2m", "6m"])
def test_a_full_disk_ends_the_run_which_continues_when_there_is_room(size, disk, whole):
    path = write_spec_in(disk(f"size={size}") / "run", SPEC)
    status, log = train(path)
    assert status != 0, log
    assert not (path.parent / RESULT).exists()
    disk("size=64m")
    assert train(path)[0] == 0
    assert (path.parent / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    assert curve(path.parent) == curve(whole)
