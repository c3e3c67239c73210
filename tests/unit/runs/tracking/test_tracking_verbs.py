from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from fabricated import make_specs, write_run
from mlflow_servers import free_port
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.runs.tracking import store
from benchmark.runs.tracking.notes import served_at

TOY = {
    "name": "toy",
    "title": "A toy",
    "question": "Does it work?",
    "metrics": ("recall_at_1", "map"),
    "folder": lambda results: results / "toy",
}


@pytest.fixture
def study(monkeypatch):
    """A study called toy whose grid is two fabricated losses."""
    specs = make_specs()
    monkeypatch.setattr(
        "benchmark.study.load_study", lambda name, results=None: SimpleNamespace(**TOY)
    )
    monkeypatch.setattr(
        "benchmark.study.grid.expand",
        lambda study: {name: SimpleNamespace(spec=spec) for name, spec in specs.items()},
    )
    return specs


def track(*words: object):
    return CliRunner().invoke(app, ["track", *map(str, words)])


def test_prepare_and_import_say_what_they_did(study, tmp_path):
    for spec in study.values():
        write_run(tmp_path, spec)
    assert track("prepare", "toy", "--results", tmp_path).exit_code == 0
    done = track("import", "toy", "--results", tmp_path)
    assert done.exit_code == 0
    assert "8 imported, 0 completed, 0 present, 0 unfinished" in done.output


@pytest.mark.parametrize("verb", ["prepare", "import"])
def test_without_a_server_the_study_goes_on_with_a_warning(
    study, tmp_path, monkeypatch, closed_port, verb
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    done = track(verb, "toy", "--results", tmp_path)
    assert done.exit_code == 0
    assert (
        "warning: MLflow" in done.output and "python -m benchmark track import toy" in done.output
    )


def test_strict_makes_an_unreachable_server_a_failure(study, tmp_path, monkeypatch, closed_port):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    assert track("import", "toy", "--results", tmp_path, "--strict").exit_code == 1


def test_the_study_is_described_with_its_report_and_the_ui_serves_it(study, tmp_path, monkeypatch):
    assert track("prepare", "toy", "--results", tmp_path).exit_code == 0
    note = store.connect(tmp_path).get_experiment_by_name("toy").tags["mlflow.note.content"]
    for part in (
        "A toy",
        "Does it work?",
        "`toy/report/index.html`",
        "`recall_at_1`, `map`",
        served_at("toy"),
    ):
        assert part in note
    assert str(tmp_path) not in note

    page = tmp_path / "toy" / "report" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("the report")
    commands = []
    monkeypatch.setattr(os, "execve", lambda path, words, environment: commands.append(words))
    assert track("ui", "--results", tmp_path, "--port", free_port()).exit_code == 0
    (command,) = commands
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert (
        command[command.index("--artifacts-destination") + 1] == (tmp_path / "mlartifacts").as_uri()
    )
    assert (tmp_path / "mlartifacts" / "toy" / "report.html").read_text() == "the report"


def test_the_ui_needs_a_store(tmp_path):
    done = track("ui", "--results", tmp_path)
    assert done.exit_code != 0
    assert "mlflow.db does not exist; run a study" in str(done.exception)


def test_the_ui_of_a_remote_server_is_named_rather_than_started(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@tracking.example")
    done = track("ui", "--results", tmp_path)
    assert done.exit_code == 0
    assert "https://tracking.example" in done.output and "secret" not in done.output
