"""A study whose MLflow server is away ends with a warning; the same command brings its runs in."""

from __future__ import annotations

from pathlib import Path

import pytest
from workplace import Workplace, jobs, small_study

from benchmark.runs.tracking import connected

pytestmark = pytest.mark.stress
THE_IMPORT = "results/small/imported.txt"


def in_mlflow(results: Path) -> list[str]:
    """Return the run_id of every run of the study in the store, sorted, doubled ones twice."""
    with connected(results) as client:
        found = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    return sorted(run.data.tags["run_id"] for run in found)


def test_an_import_that_was_missed_is_made_good_once(tmp_path, real_server, monkeypatch):
    place = Workplace(tmp_path, environment={"BENCHMARK_FORK_SERVER": "off"})
    place.write(small_study("small", ["smooth_ap"]))
    server = real_server(tmp_path / "server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)
    place.environment["QUICK_STEPS"] = "build"
    done = place.snakemake("small", target="all", hooks=True)
    assert f"error: MLflow store {server.address} cannot be used" in done.stderr
    finished = place.results()
    assert len(finished) == 2
    server.start()
    for imported in (1, 0):
        done = place.snakemake("small", target=THE_IMPORT, hooks=True)
        assert done.returncode == 0, done.stderr
        assert jobs(done).get("import_runs", 0) == imported
        assert in_mlflow(tmp_path / "results") == sorted(finished)
    assert place.results() == finished
