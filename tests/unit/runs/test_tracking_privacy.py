"""A real study from training to report and MLflow store: nothing in it names a user, a machine or a
folder."""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner
from workplace import ROOT, small_study

from benchmark.__main__ import app
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.training.run import train

USER, HOST = "somebody-private", "a-private-machine"
VERBS = ("collect", "build")


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """The results of a study of one loss and two seeds, made by a user and on a machine with
    telling names."""
    home = tmp_path / "home" / USER
    home.mkdir(parents=True)
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, USER)
    monkeypatch.setenv("HOSTNAME", HOST)
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr(platform, "node", lambda: HOST)
    path = home / "private.yaml"
    path.write_text(yaml.safe_dump(small_study("private", ["smooth_ap"])))
    results = home / "results"
    for run in expand(load_study(str(path))).values():
        run.spec.write(results / run.spec.folder / "spec.json")
        train(results / run.spec.folder / "spec.json")
    for verb in (*((verb,) for verb in VERBS), ("track", "import")):
        done = CliRunner().invoke(
            app, [*verb, str(path), "--results", str(results)], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
    return results


def test_tracking_report_and_results_name_no_user_machine_or_folder(results, tmp_path):
    secrets = {USER, HOST, str(tmp_path), str(ROOT), str(Path.home())}
    secrets |= {
        name for name in [os.uname().nodename] if len(name) > 4 and name != "localhost"
    }  # "vm" is anywhere
    files = [path for path in results.rglob("*") if path.is_file()]
    kinds = {path.name for path in files}
    assert {
        "mlflow.db",
        "index.html",
        "runs.csv",
        "result.json",
        "provenance.json",
        "metrics.jsonl",
    } <= kinds
    assert any("mlartifacts" in path.parts for path in files)
    found = {
        (path.relative_to(results).as_posix(), secret)
        for path in files
        for secret in secrets
        if secret.encode() in path.read_bytes()
    }
    assert found == set()
