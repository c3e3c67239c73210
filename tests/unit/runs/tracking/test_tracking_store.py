from __future__ import annotations

import contextlib
import os
import socketserver
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmark.runs.tracking import patience, store
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


def test_the_store_names_no_folder_of_this_machine(tmp_path):
    store.prepare("toy", "A toy", tmp_path)
    assert [place for _, place in experiments(tmp_path)] == [
        "mlflow-artifacts:/0",
        "mlflow-artifacts:/toy",
    ]
    assert str(tmp_path).encode() not in (tmp_path / store.DATABASE).read_bytes()


def test_a_deleted_experiment_is_restored(tmp_path):
    identity = store.prepare("toy", "A toy", tmp_path)
    store.connect(tmp_path).delete_experiment(identity)
    assert store.prepare("toy", "A toy", tmp_path) == identity
    assert store.connect(tmp_path).get_experiment(identity).lifecycle_stage == "active"


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


def test_what_a_killed_process_left_of_a_store_is_removed(tmp_path):
    left = [tmp_path / f".{store.DATABASE}.{name}" for name in ("k3f9a2bc", "k3f9a2bc-journal")]
    for path in left:
        path.write_bytes(b"half")
    store.prepare("toy", "A toy", tmp_path)
    assert not [path for path in left if path.exists()]


@pytest.mark.parametrize(
    "address",
    ["mlflow-artifacts:/../../evil", "mlflow-artifacts:/a/../../x", "/any/where", "s3://bucket/x"],
)
def test_a_store_from_elsewhere_writes_no_artifact_outside_of_its_folder(tmp_path, address):
    from types import SimpleNamespace

    from benchmark.core.errors import BenchmarkError
    from benchmark.runs.tracking.client import _store_artifact

    run = SimpleNamespace(info=SimpleNamespace(artifact_uri=address, run_id="0"))
    client = SimpleNamespace(tracking_uri=store.tracking_uri(tmp_path / "results"))
    with pytest.raises(BenchmarkError, match=r"leads out of|outside of the results"):
        _store_artifact(client, run, "spec.json", "{}", tmp_path / "results")
    assert not any(tmp_path.iterdir())


def test_artifacts_do_not_follow_a_link_out_of_the_results(tmp_path):
    from types import SimpleNamespace

    from benchmark.core.errors import BenchmarkError
    from benchmark.runs.tracking.client import _store_artifact

    elsewhere, results = tmp_path / "elsewhere", tmp_path / "results"
    elsewhere.mkdir()
    results.mkdir()
    (results / store.ARTIFACTS).symlink_to(elsewhere)
    run = SimpleNamespace(info=SimpleNamespace(artifact_uri="mlflow-artifacts:/0/1", run_id="1"))
    client = SimpleNamespace(tracking_uri=store.tracking_uri(results))
    with pytest.raises(BenchmarkError, match=r"leads out of .* through a link"):
        _store_artifact(client, run, "spec.json", "{}", results)
    assert not any(elsewhere.iterdir())


def test_a_refused_connection_is_reported_without_credentials(tmp_path, monkeypatch, closed_port):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{closed_port}")
    with pytest.raises(
        TrackingError, match="start the server or unset MLFLOW_TRACKING_URI"
    ) as caught:
        store.prepare("toy", "A toy", tmp_path)
    assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_costs_a_bounded_time(tmp_path, monkeypatch, hanging_server):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setattr(patience, "PROBE_SECONDS", 0.2)
    with pytest.raises(TrackingError, match="timed out"):
        store.prepare("toy", "A toy", tmp_path)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "SSH"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "abc"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "headers"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b'{"experiment": 3}', "experiment"),
    ],
)
def test_a_server_of_something_else_is_one_clear_error(tmp_path, monkeypatch, answer, reason):
    class Answer(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
        with pytest.raises(TrackingError, match=reason):
            store.prepare("toy", "A toy", tmp_path)
        server.shutdown()


@pytest.mark.parametrize(
    ("start", "piece", "pause", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.05, "did not end within"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.05, "did not end within"),
        (b"HTTP/1.1 200 OK\r\n\r\n", bytes(2**20), 0, "is larger than"),
        (b"HTTP/1.1 429 No\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n", b"", 9, "did not"),
    ],
)
def test_an_answer_without_end_is_one_clear_error(
    tmp_path, monkeypatch, start, piece, pause, reason
):
    ended = threading.Event()

    class Answer(socketserver.BaseRequestHandler):
        def handle(self):
            asked = self.request.recv(65536)
            if b"/health" in asked:
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                return
            with contextlib.suppress(OSError):
                self.request.sendall(start)
                while not ended.wait(pause):
                    self.request.sendall(piece)

    monkeypatch.setattr(patience, "MOST_BYTES", 2**26)
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(store, "call_seconds", lambda: 20.0 if not pause else 0.5)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(TrackingError, match=f"its answer {reason}"):
            store.prepare("toy", "A toy", tmp_path)
        ended.set()
        server.shutdown()


def test_the_users_own_patience_is_kept(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    environment = dict(os.environ)
    patience.be_patient(environment)
    assert environment["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert environment["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "2"


@pytest.mark.parametrize("address", ["mssql://server/x", "mysql+nothere://me:secret@server/x"])
def test_a_database_without_its_driver_is_one_message_that_says_so(tmp_path, monkeypatch, address):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(TrackingError, match="install the Python package of this database's driver"):
        store.prepare("toy", "A toy", tmp_path)
    with pytest.raises(TrackingError) as caught:
        store.prepare("toy", "A toy", tmp_path)
    assert "secret" not in str(caught.value)


def test_a_folder_that_has_no_address_is_refused_and_nothing_is_made_beside_it(tmp_path):
    with pytest.raises(TrackingError, match=r"a\?b/mlflow.db cannot be used .* without '\?'"):
        store.prepare("toy", "A toy", tmp_path / "a?b")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("sqlite:////{}/a.db?timeout=abc", "has a wrong option: could not convert .*'abc'"),
        ("sqlite:////{}/a.db?detect_types=x", "has a wrong option: invalid literal"),
        ("sqlite://", "in memory, and gone when the command ends; name a file"),
        ("sqlite:///:memory:", "in memory, and gone"),
        ("sqlite:////{}/missing/a.db", "unable to open database file"),
    ],
)
def test_an_address_of_no_file_is_one_message_at_once(tmp_path, monkeypatch, address, told):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address.format(tmp_path))
    monkeypatch.setattr("mlflow.MlflowClient", None)  # which would try for two minutes
    with pytest.raises(TrackingError, match=told):
        store.prepare("toy", "A toy", tmp_path / "results")
