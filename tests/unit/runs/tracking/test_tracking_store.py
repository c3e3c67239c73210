from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.runs.tracking import store
from benchmark.runs.tracking.store import TrackingError

# Each process of its own would import MLflow, which takes most of the time.
FOUR_PREPARE = """
import os, sys, traceback
import mlflow
from benchmark.runs.tracking.store import prepare
for _ in range(4):
    if os.fork() == 0:
        status = 1
        try:
            print(prepare("toy", "A toy", sys.argv[1]), flush=True)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
print(*(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)))
"""


def experiments(results: Path) -> list[tuple]:
    with sqlite3.connect(results / store.DATABASE) as database:
        return database.execute(
            "select name, artifact_location from experiments order by experiment_id"
        ).fetchall()


def test_the_store_is_a_sqlite_file_in_the_results_unless_the_variable_names_another(
    tmp_path, monkeypatch
):
    assert store.tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example:5000")
    assert store.tracking_uri(tmp_path) == "http://tracking.example:5000"


def test_four_processes_that_prepare_at_once_make_one_sound_store_with_one_experiment(tmp_path):
    results = tmp_path / "results"
    command = [sys.executable, "-c", FOUR_PREPARE, results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=480, check=False)
    *answers, statuses = done.stdout.splitlines()
    assert statuses == "0 0 0 0", done.stderr
    assert len(answers) == 4 and len(set(answers)) == 1
    assert [name for name, _ in experiments(results)] == ["Default", "toy"]
    again = store.prepare("toy", "A toy", results)
    assert again == answers[0]
    with sqlite3.connect(results / store.DATABASE) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_the_store_names_no_folder_of_this_machine(prepared):
    assert [place for _, place in experiments(prepared)] == [
        "mlflow-artifacts:/0",
        "mlflow-artifacts:/toy",
    ]
    assert str(prepared).encode() not in (prepared / store.DATABASE).read_bytes()


def test_a_deleted_experiment_is_restored(results):
    identity = store.prepare("toy", "A toy", results)
    store.connect(results).delete_experiment(identity)
    assert store.prepare("toy", "A toy", results) == identity
    assert store.connect(results).get_experiment(identity).lifecycle_stage == "active"


def test_a_store_that_was_not_finished_is_not_there(tmp_path, monkeypatch):
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    def interrupted(self, uri, root):
        Path(uri.removeprefix("sqlite:///")).write_bytes(b"SQLite format 3\0 half made")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SqlAlchemyStore, "__init__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.prepare("toy", "A toy", tmp_path)
    assert not (tmp_path / store.DATABASE).exists()
    store.prepare("toy", "A toy", tmp_path)
    assert [name for name, _ in experiments(tmp_path)] == ["Default", "toy"]


def test_a_refused_connection_is_reported_without_credentials(tmp_path, monkeypatch, closed_port):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{closed_port}")
    with pytest.raises(
        TrackingError, match="start the server or unset MLFLOW_TRACKING_URI"
    ) as caught:
        store.prepare("toy", "A toy", tmp_path)
    assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_costs_a_bounded_time(tmp_path, monkeypatch, hanging_server):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match="timed out"):
        store.prepare("toy", "A toy", tmp_path)


def test_the_users_own_settings_of_mlflow_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    with store.speaking_plainly(tmp_path):
        assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
        assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "2"
