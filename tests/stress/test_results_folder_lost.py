"""The results folder of a running workflow is deleted, or cannot be written to: one clear error,
nothing made anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from workplace import LOCAL, ROOT, Workplace, small_study

pytestmark = pytest.mark.stress


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Workplace]:
    """A workplace whose empty results folder lies on a file system that is mounted read-only."""
    place = tmp_path / "results"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=64m", "tmpfs", str(place)], check=False
    )
    if done.returncode:
        pytest.skip("cannot mount a file system here")
    yield Workplace(tmp_path)
    subprocess.run(["umount", "--lazy", str(place)], check=True)


# During a training; and before one, when its specification was just written.
@pytest.mark.parametrize("after", ["metrics.jsonl", "spec.json"])
def test_a_workflow_whose_results_were_deleted_says_so_and_makes_no_report_in_their_place(
    after, tmp_path
):
    workplace = Workplace(tmp_path)
    workplace.write(small_study("small", ["smooth_ap", "roadmap"]))
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--profile",
        str(LOCAL),
    ]
    command += ["--cores", "1", "--config", "study=small.yaml"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 120
    while not list(workplace.runs.glob(f"*/*/*/*/*/{after}")) and time.monotonic() < deadline:
        time.sleep(0.01)
    (tmp_path / "results").rename(
        tmp_path / "taken_away"
    )  # at once: nothing is written while it is being deleted
    shutil.rmtree(tmp_path / "taken_away")
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    message = f"error: {workplace.runs} is gone: deleted, moved or unmounted while the workflow ran"
    assert output.count(message) == 1 and "start the same command again" in output
    assert "Traceback" not in output and "wrote results" not in output
    assert not workplace.runs.exists() and files(tmp_path / "results") == []


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mount") is None, reason="only root may mount file systems"
)
def test_a_workflow_on_a_read_only_results_folder_is_one_error_and_goes_on_when_it_can_write(
    read_only,
):
    read_only.write(small_study("small", ["smooth_ap"]))
    done = read_only.snakemake("small", collect_only=False, hooks=True)
    assert done.returncode != 0
    assert "Failed to create output directory results/runs/" in done.stderr
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    assert files(read_only.folder / "results") == []

    subprocess.run(["mount", "-o", "remount,rw", str(read_only.folder / "results")], check=True)
    done = read_only.snakemake("small")
    assert done.returncode == 0, done.stderr
    assert len(read_only.results()) == 2
