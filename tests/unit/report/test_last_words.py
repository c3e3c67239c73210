"""The last words of a workflow come, whatever is wrong with what they are made of."""

from __future__ import annotations

import sys

import pytest
from made_up_results import made_up_study
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.report.summary import last_words


def test_the_words_of_the_import_follow_those_of_the_study(tmp_path):
    (tmp_path / "log").write_bytes(b"warning: \xff\n")
    study = made_up_study(seeds=(0,))
    write_text(
        study.folder(tmp_path) / "imported.txt", "MLflow: 1 imported\ncompare in MLflow: a\n"
    )
    words = last_words(lambda: study, tmp_path, tmp_path / "log", list, finished=True)
    assert "missing" in words
    assert "\ncompare in MLflow: a\n" in words
    assert words.endswith("\nwarning: \N{REPLACEMENT CHARACTER}")


def test_files_that_were_asked_for_alone_are_named_alone(tmp_path):
    study = made_up_study(seeds=(0,))
    args = (lambda: study, tmp_path, tmp_path / "log", lambda: {"b.json", "a.json"})
    assert last_words(*args, finished=True) == "there: a.json\nthere: b.json"
    assert "missing" in last_words(*args, finished=False)


def test_an_error_is_told_in_words(tmp_path):
    def reported():
        raise ConfigError("small-selected.yaml", ["is damaged"])

    words = last_words(reported, tmp_path, tmp_path / "log", list, finished=True)
    assert words.startswith("small-selected.yaml: 1 problem")


@pytest.mark.parametrize(("failed", "status"), [("", 0), ("table cost: ValueError: odd\n", 1)])
def test_what_could_not_be_made_is_named_and_is_the_status_of_a_run(
    failed, status, tmp_path, monkeypatch
):
    study = made_up_study(seeds=(0,))
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    monkeypatch.setattr("snakemake.cli.main", lambda words: sys.exit(0))
    path = study.folder(tmp_path) / "report" / "failed.txt"
    path.parent.mkdir(parents=True)
    path.write_text(failed)
    done = CliRunner().invoke(app, ["run", "made_up", "--results", str(tmp_path)])
    assert done.exit_code == status
    words = last_words(lambda: study, tmp_path, tmp_path / "log", list, finished=True)
    assert ("not made: table cost: ValueError: odd" in words) == bool(failed)
