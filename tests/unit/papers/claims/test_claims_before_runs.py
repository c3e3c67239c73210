"""What is made before any run has finished."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from benchmark.__main__ import app


def test_a_study_none_of_whose_runs_has_finished_is_judged_as_not_run(tmp_path):
    for verb in ("collect", "verdicts", "claims", "build"):
        done = CliRunner().invoke(app, [verb, "smooth_ap", "--results", str(tmp_path)])
        assert done.exit_code == 0, (verb, done.output, done.exception)
    with open(tmp_path / "smooth_ap" / "claims.csv", newline="") as stream:
        assert {row["verdict"] for row in csv.DictReader(stream)} <= {"not_run", "not_asked"}
    assert (tmp_path / "smooth_ap" / "report" / "failed.txt").read_text() == ""
