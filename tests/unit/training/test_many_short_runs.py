"""``fill``: one run that breaks leaves a word in its log and does not stop the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from long_lists import long_but
from tiny_runs import wait_for
from workplace import STUCK, small_study

from benchmark.core.records import LOG, RESULT

RUNS = 4  # more than go at once


def fill(folder: Path, study: dict[str, Any]) -> subprocess.Popen[str]:
    """Start ``fill`` as a shell does: in a group of processes of its own."""
    (folder / "own.yaml").write_text(yaml.safe_dump(study))
    return subprocess.Popen(
        [sys.executable, "-m", "benchmark", "fill", "own.yaml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the status and what was printed."""
    printed, _ = process.communicate(timeout=STUCK)
    return process.returncode, printed


def test_failed_runs_are_counted_and_the_others_go_on(tmp_path):
    study = small_study("own", ["sup_ap"]) | {"seeds": [0]}
    missing = {"name": "folder", "label": "lost", "params": {"root": "nowhere"}}
    study["blocks"].append({**study["blocks"][0], "name": "lost", "datasets": [missing]})
    status, printed = ended(fill(tmp_path, study))
    assert status == 1
    assert "1 of 2 runs finished, 1 failed" in printed
    (log,) = (tmp_path / "results" / "runs" / "lost").rglob(LOG)
    said = next(line for line in printed.splitlines() if str(log.parent.name) in line)
    assert "nowhere" in said
    assert "nowhere" in log.read_text()


def test_a_changed_study_trains_again_and_the_old_results_are_kept(tmp_path):
    for tau in (0.1, 0.2):
        study = small_study("own", ["smooth_ap_wide"], tau) | {"seeds": [0]}
        assert ended(fill(tmp_path, study))[0] == 0
    (result,) = (tmp_path / "results" / "runs").glob("*/*/*/*/*/result.json")
    (kept,) = result.parent.glob("previous/*/result.json")
    assert json.loads(kept.read_text())["spec_digest"] == kept.parent.name
    assert json.loads(result.read_text())["spec_digest"] != kept.parent.name


@pytest.mark.parametrize("number", long_but([signal.SIGINT], [signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_to_stop_ends_it_in_good_order_and_the_same_command_goes_on(number, tmp_path):
    study = small_study("own", ["sup_ap"]) | {"seeds": [*range(RUNS)]}
    process = fill(tmp_path, study)
    runs = tmp_path / "results" / "runs"
    wait_for(lambda: any("epoch" in log.read_text() for log in runs.rglob(LOG)))
    os.killpg(process.pid, number)
    status, printed = ended(process)
    assert status == 1
    assert "finished runs are kept, the same command continues" in printed
    finished = {path: path.read_bytes() for path in runs.rglob(RESULT)}
    assert len(finished) < RUNS
    assert "Traceback" not in printed
    assert ended(fill(tmp_path, study))[0] == 0
    assert len([*runs.rglob(RESULT)]) == RUNS
    assert {path: path.read_bytes() for path in finished} == finished
