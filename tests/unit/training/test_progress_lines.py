"""The line that a finished epoch leaves in the log, and how long a study takes by one epoch."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner
from workplace import small_study

from benchmark.__main__ import app
from benchmark.core.results import EpochRecord
from benchmark.training.progress import Progress

RECORD = EpochRecord(
    epoch=2,
    step=20,
    loss=0.5,
    learning_rate=0.1,
    images_per_second=100.0,
    loss_ms=1.5,
    seconds=3.0,
    evaluation=None,
)


@pytest.mark.parametrize(
    ("evaluation", "shown", "left_out"),
    [
        (
            {"test": {"recall_at_1": 0.5, "recall_at_10": 0.7, "map_at_r": 0.25, "map": 0.3}},
            ["test recall_at_1 50.00", "test map_at_r 25.00"],
            ["recall_at_10", " map "],
        ),
        (
            {"roxford5k_medium": {"map": 0.625}, "roxford5k_medium+aqe": {"map": 0.75}},
            ["roxford5k_medium map 62.50", "roxford5k_medium+aqe map 75.00"],
            [],
        ),
        (None, ["epoch 2/3", "loss 0.50000"], ["recall", "map"]),
    ],
)
def test_headline_scores_are_shown_and_map_where_there_are_no_others(
    evaluation, shown, left_out, capsys
):
    Progress("a run", 3).finish_epoch(dataclasses.replace(RECORD, evaluation=evaluation), 10.0)
    line = capsys.readouterr().out
    assert all(part in line for part in shown)
    assert not any(part in line for part in left_out)


@pytest.mark.parametrize(
    ("epochs", "told"), [(50, r"2 runs; .*\nabout \d+ (s|min) on this machine\n$"), (49, "$")]
)
def test_one_epoch_tells_before_all_runs_how_long_a_study_takes_that_is_long_enough(
    epochs, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    study = small_study("own", ["smooth_ap"])
    override = {"training": {"epochs": epochs}}
    study["blocks"][0] |= {"option": "long", "override": override}
    Path("own.yaml").write_text(yaml.safe_dump(study))
    monkeypatch.setattr("snakemake.cli.main", lambda words: sys.exit(0))
    done = CliRunner().invoke(app, ["run", "own.yaml", "--cores", "2"], catch_exceptions=False)
    assert re.match(rf"reading own.yaml ...\n{told}", done.stderr), done.stderr
    assert not Path("results").exists()
