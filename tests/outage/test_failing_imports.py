"""Imports into stores that are broken, and imports and runs beside servers that refuse, never
answer or answer for ever: each costs a bounded time and says what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from made_up_records import make_spec, write_run
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import RunError
from benchmark.core.records import SPEC
from benchmark.runs import tracking
from benchmark.runs.tracking import connected, experiment_of, import_runs
from benchmark.training import progress
from benchmark.training.progress import logged_live

pytestmark = pytest.mark.stress
DATABASE = "mlflow.db"


def bring(results, specs) -> dict[str, int]:
    return import_runs("toy", "A toy", specs, results, results / "none")[0]


def test_a_deleted_experiment_is_an_error_with_the_command_that_restores_it(tmp_path):
    spec = make_spec()
    write_run(tmp_path, spec)
    bring(tmp_path, [spec])
    with connected(tmp_path) as client:
        number = experiment_of(client, "toy")
        client.delete_experiment(number)
    with pytest.raises(RunError, match=f"mlflow experiments restore --experiment-id {number}'"):
        bring(tmp_path, [spec])
    with connected(tmp_path) as client:
        client.restore_experiment(number)
    assert bring(tmp_path, [spec])["present"] == 1


@pytest.mark.parametrize("keeps_each_call", [False, True], ids=["a database", "a server"])
def test_an_import_cut_off_after_any_call_is_made_good_by_the_next(
    keeps_each_call, tmp_path, monkeypatch
):
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    if keeps_each_call:
        monkeypatch.setattr(tracking, "at_once", nullcontext)
    spec = make_spec()
    write_run(tmp_path, spec)
    calls = {"left": 0}
    names = ("create_run", "log_batch", "log_inputs", "set_terminated")

    def cut_off(name, original):
        def call(*args, **kwargs):
            if calls["left"] == 0:
                raise MlflowException(f"the server died before {name}")
            calls["left"] -= 1
            return original(*args, **kwargs)

        return call

    for name in names:
        monkeypatch.setattr(MlflowClient, name, cut_off(name, getattr(MlflowClient, name)))
    for allowed in range(5):
        calls["left"] = allowed
        with pytest.raises(RunError, match="the server died before"):
            bring(tmp_path, [spec])
    calls["left"] = 99
    assert bring(tmp_path, [spec])["imported"] == 1
    with connected(tmp_path) as client:
        (run,) = client.search_runs([experiment_of(client, "toy")])
        history = client.get_metric_history(run.info.run_id, "curve/loss")
    assert [point.step for point in history] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("named", [False, True])
def test_a_store_that_was_not_finished_is_not_there(named, tmp_path, monkeypatch):
    from mlflow import MlflowClient

    if named:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / DATABASE}")

    def interrupted(self):
        Path(self.tracking_uri.removeprefix("sqlite:///")).write_bytes(b"SQLite format 3\0 half")
        raise KeyboardInterrupt

    monkeypatch.setattr(MlflowClient, "search_experiments", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bring(tmp_path, [])
    assert not (tmp_path / DATABASE).exists()


# A file that takes no more bytes than the limit, as on a full disk: the database is left half made.
CUT_OFF = """
import resource, sys
from mlflow import MlflowClient
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
MlflowClient(sys.argv[1]).search_experiments()
"""


def half_made(database: Path) -> str:
    """Leave a half-made store; return the version that it has reached."""
    command = [sys.executable, "-c", CUT_OFF, f"sqlite:///{database}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OperationalError" in done.stderr
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("select version_num from alembic_version").fetchone()[0]


@pytest.mark.parametrize("named", [False, True])
def test_a_store_half_made_on_a_full_disk_is_made_anew(named, tmp_path, monkeypatch):
    half_made(tmp_path / DATABASE)
    if named:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / DATABASE}")
    spec = make_spec()
    write_run(tmp_path, spec)
    assert bring(tmp_path, [spec])["imported"] == 1
    assert bring(tmp_path, [spec])["present"] == 1


def test_a_store_with_runs_whose_upgrade_was_cut_off_is_left_alone_and_the_error_says_what_to_do(
    tmp_path, monkeypatch
):
    version = half_made(tmp_path / "half.db")
    spec = make_spec()
    write_run(tmp_path, spec)
    bring(tmp_path, [spec])
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
        database.execute("update alembic_version set version_num = ?", (version,))
        database.execute("drop table webhook_events")
    other = shutil.copy(tmp_path / DATABASE, tmp_path / "other.db")  # MLflow opens a file only once
    before = Path(other).read_bytes()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{other}")
    with pytest.raises(RunError, match=r"already exists\); it has runs.*: move it away"):
        bring(tmp_path, [spec])
    assert Path(other).read_bytes() == before


def test_a_store_of_an_older_mlflow_is_left_alone_and_the_command_that_upgrades_it_named(tmp_path):
    bring(tmp_path / "made", [])
    shutil.copy(tmp_path / "made" / DATABASE, tmp_path)  # MLflow looks at a store only once
    with sqlite3.connect(tmp_path / DATABASE) as database:
        database.execute("update alembic_version set version_num = '97727af70f4d'")
    with pytest.raises(RunError, match="mlflow db upgrade"):
        bring(tmp_path, [])


def test_a_server_that_sends_a_byte_now_and_then_costs_an_import_a_bounded_time(
    tmp_path, monkeypatch, dripping_server
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", dripping_server)
    monkeypatch.setattr(tracking, "PATIENCE", 1)
    with pytest.raises(RunError, match="no answer for 1 s"):
        bring(tmp_path, [])


def test_without_a_server_the_import_fails_and_says_how_to_do_it_later(
    tmp_path, monkeypatch, closed_port
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{closed_port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    command = ["track", "import", "smoke", "--results", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert f"127.0.0.1:{closed_port} cannot be used" in done.output
    assert "python -m benchmark track import smoke" in done.output
    assert "secret" not in done.output
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "1", "the user's setting is kept"


def test_a_refused_connection_is_a_warning(tmp_path, monkeypatch, closed_port, quick_logger, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setattr(progress, "LOGGER", "benchmark.runs.tracking")
    with logged_live(tmp_path / SPEC, tmp_path):
        assert quick_logger[0].wait(90) == 0
    assert "the import brings this run in later" in capfd.readouterr().err


def test_a_server_that_never_answers_delays_no_run_and_its_process_ends_after_it(
    tmp_path,
    monkeypatch,
    hanging_server,
    quick_logger,
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    before = time.monotonic()
    with logged_live(tmp_path / SPEC, tmp_path):
        time.sleep(3)  # it asks the server by then, or imports still
    lasted = time.monotonic() - before
    assert lasted < 5, "a short run waits for 3 % of itself"
    quick_logger[0].wait(30)
    assert time.monotonic() - before - lasted > 4


def test_a_run_of_seconds_is_left_to_the_import(
    tmp_path, monkeypatch, hanging_server, quick_logger
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setattr(progress, "SOON", 60.0)
    monkeypatch.setattr(progress, "SMALL_SHARE", 1e6)
    with logged_live(tmp_path / SPEC, tmp_path):
        time.sleep(1)
        command = Path(f"/proc/{quick_logger[0].pid}/cmdline").read_bytes().split(b"\0")
        assert command[1] == b"-PS", "Python alone waits, which imports nothing"
    assert quick_logger[0].poll() == 0
