"""Imports of many runs into a database: few commits, and a kill at any moment doubles nothing."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from made_up_records import make_specs, write_run
from sqlalchemy import event
from sqlalchemy.engine import Engine

from benchmark.core.records import RunSpec
from benchmark.runs import tracking
from benchmark.runs.tracking import COMPLETE, import_runs

pytestmark = pytest.mark.stress
KILLS = 20


def finished(runs: int, results: Path) -> list[RunSpec]:
    """Return the specifications of finished runs in ``results``, which has an empty store."""
    specs = list(make_specs(losses=1, seeds=runs // 2).values())
    for spec in specs:
        write_run(results, spec)
    os.waitpid(started([], results), 0)
    return specs


def bring(specs: list[RunSpec], results: Path) -> dict[str, int]:
    return import_runs("toy", "A toy", specs, results, results / "none")[0]


def started(specs: list[RunSpec], results: Path) -> int:
    """Return the process that imports the runs; this process opens no database."""
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401 - once, before the forks

    child = os.fork()
    if child == 0:
        bring(specs, results)
        os._exit(0)
    return child


def complete(results: Path) -> list[str]:
    """Return the run id of every complete run that is not deleted."""
    ask = (
        "select named.value from tags named join tags done using (run_uuid) "
        "join runs using (run_uuid) where named.key = 'run_id' and done.key = ? "
        "and lifecycle_stage = 'active'"
    )
    with closing(sqlite3.connect(results / "mlflow.db")) as store:
        return [value for (value,) in store.execute(ask, (COMPLETE,))]


def test_an_import_of_100_runs_commits_ten_times_at_most(tmp_path):
    specs = finished(100, tmp_path)
    commits = []

    def count(connection: object) -> None:
        commits.append(connection)

    event.listen(Engine, "commit", count)
    try:
        assert bring(specs, tmp_path)["imported"] == 100
        assert 2 <= len(commits) <= 10
        commits.clear()
        assert bring(specs, tmp_path)["present"] == 100
        assert len(commits) <= 10
    finally:
        event.remove(Engine, "commit", count)


def test_an_import_killed_at_any_moment_goes_on_without_doubles(tmp_path, monkeypatch):
    monkeypatch.setattr(tracking, "TOGETHER", 4)
    undisturbed = finished(40, tmp_path / "undisturbed")
    began = time.monotonic()
    os.waitpid(started(undisturbed, tmp_path / "undisturbed"), 0)
    seconds = time.monotonic() - began
    specs = finished(40, tmp_path)
    generator = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        child = started(specs, tmp_path)
        time.sleep(generator.uniform(0, seconds / 4))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        found = complete(tmp_path)
        assert len(found) == len(set(found))
    assert killed > KILLS / 2
    left = bring(specs, tmp_path)
    assert left["imported"] + left["present"] == len(specs)
    assert sorted(complete(tmp_path)) == sorted(spec.run_id for spec in specs)
