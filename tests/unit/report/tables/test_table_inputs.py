from __future__ import annotations

import dataclasses

import pytest
from made_up_inputs import made, made_up_inputs, statuses, two_losses, write_collected
from made_up_results import made_up_runs, run_table

from benchmark.core.files import guess_csv
from benchmark.core.words import duration, interval, mean_sd, p_value, points
from benchmark.report.build import build
from benchmark.report.gallery import PairChoice
from benchmark.report.study_results import StudyResults
from benchmark.study import DatasetChoice
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed


@pytest.fixture
def small_study():
    return two_losses()


def test_a_dataset_may_be_called_like_a_number(tmp_path):
    names = ("2011", "NA", "1e5", "true")
    study = two_losses(tables=("paired",), figures=())
    datasets = tuple(DatasetChoice(name, name, {}) for name in names)
    block = dataclasses.replace(study.blocks[0], datasets=datasets)
    study = dataclasses.replace(study, blocks=(block,))
    folder = write_collected(made_up_inputs(study), made_up_runs(study), tmp_path)
    built = build(study, tmp_path, PairChoice())
    assert built.failed == {}
    assert built.artefacts[0].rows > 0
    assert set(guess_csv(folder / "stats" / "paired.csv")["dataset"]) == {*names}


def test_reasons_lose_the_paths_of_the_machine(small_study):
    runs = made_up_runs(small_study, bad=statuses("sup_ap 32 0 failed"))
    runs.loc[runs.status == "failed", "reason"] = "no such folder: /home/someone/data/flowers"
    found = StudyResults.of(StudyGrid.of(small_study), run_table(runs), {}, Printed(), {}).runs
    assert set(found["reason"]) == {"", "no such folder: …/flowers"}


def test_writing_takes_away_a_table_that_has_nothing_to_show_any_more(small_study, tmp_path):
    study = dataclasses.replace(small_study, tables=("missing",))
    lost = made_up_inputs(study, bad=statuses("sup_ap 32 0 diverged"))
    made("table", lost, tmp_path)
    assert (tmp_path / "missing.csv").is_file()
    records = made("table", made_up_inputs(study), tmp_path)
    assert not (tmp_path / "missing.csv").exists()
    assert "all 4 runs finished" in records["missing"].reason
    assert "all 4 runs finished" in (tmp_path / "missing.md").read_text()


def test_a_study_that_names_its_tables_gets_these_only(small_study, tmp_path):
    study = dataclasses.replace(small_study, tables=("cost", "comparison"))
    assert list(made("table", made_up_inputs(study), tmp_path)) == ["cost", "comparison"]


def test_numbers_are_printed_with_real_minus_signs_and_without_false_precision():
    assert points(-0.00412) == "−0.41"
    assert interval(-0.004, 0.009) == "[−0.40, +0.90]"
    assert mean_sd(0.8523, None) == "85.23"
    assert mean_sd(0.8523, float("nan")) == "85.23"
    assert p_value(0.00004) == "<0.001"
    assert p_value(0.0312) == "0.031"
    assert p_value(None) == "–"
    assert duration(3.21) == "3.2 s"
    assert duration(200) == "3 min 20 s"
    assert duration(3900) == "1 h 05 min"
