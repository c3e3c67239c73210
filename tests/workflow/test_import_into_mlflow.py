"""Finished runs reach MLflow once, however the server and the other runs fare; a study never fails
by it."""

from __future__ import annotations

import pytest
from mlflow_servers import clean_tracking, real_server  # noqa: F401
from workplace import Workplace, jobs, small_study

from benchmark.runs.tracking import connected

FOUR = small_study("small", ["smooth_ap", "smooth_ap_wide"])
BROKEN = "/smooth_ap_wide/bs32/seed1"
THE_IMPORT = "results/small/imported.txt"


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch) -> None:
    """Leave out what has no part in the import; runs that take no time need no fork server."""
    monkeypatch.setenv("BENCHMARK_FORK_SERVER", "off")
    monkeypatch.setenv("QUICK_STEPS", "finish")


def in_mlflow(place: Workplace) -> list[str]:
    """Returns the run_id of every run of the study in the store, sorted, doubled ones twice."""
    with connected(place.folder / "results") as client:
        found = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    return sorted(run.data.tags["run_id"] for run in found)


def imported(place: Workplace) -> str:
    return (place.folder / THE_IMPORT).read_text()


@pytest.mark.slow
def test_what_a_server_missed_while_it_was_away_the_next_call_imports_once(
    fresh: Workplace,
    real_server,  # noqa: F811
    monkeypatch,
):
    server = real_server(fresh.folder / "server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)
    fresh.write(FOUR)
    for trained in (4, None):  # the second call tries again in vain
        done = fresh.snakemake("small", target=THE_IMPORT, hooks=True)
        assert done.returncode == 0, done.stderr
        assert jobs(done).get("train") == trained and jobs(done)["import_runs"] == 1
        assert f"warning: MLflow store {server.address} cannot be used" in done.stderr
        assert imported(fresh) == ""

    server.start()
    done = fresh.snakemake("small", target=THE_IMPORT, hooks=True)
    assert done.returncode == 0, done.stderr
    assert jobs(done) in ({"import_runs": 1}, {"import_runs": 1, "total": 1})
    assert "4 imported, 0 present" in imported(fresh)
    assert in_mlflow(fresh) == sorted(fresh.results())
    done = fresh.snakemake("small", target=THE_IMPORT)
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr
    assert in_mlflow(fresh) == sorted(fresh.results())


@pytest.mark.slow
def test_the_good_runs_of_a_study_in_which_one_fails_are_imported_and_the_failed_one_later(
    fresh: Workplace,
):
    fresh.write(FOUR)
    fresh.environment["QUICK_TRAINING_FAILS"] = BROKEN
    assert fresh.snakemake("small", target=THE_IMPORT, hooks=True).returncode != 0
    good = sorted(fresh.results())
    assert len(good) == 3 and in_mlflow(fresh) == good

    fresh.environment.clear()
    done = fresh.snakemake("small", target=THE_IMPORT, hooks=True)
    assert done.returncode == 0, done.stderr
    assert "1 imported, 3 present" in imported(fresh)
    assert len(in_mlflow(fresh)) == 4 and in_mlflow(fresh) == sorted(fresh.results())
