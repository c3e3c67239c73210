from __future__ import annotations

import pytest
from long_tables import run_table
from made_up_inputs import made_up_inputs, write_inputs
from made_up_results import made_up_block, made_up_runs, made_up_study

from benchmark.core.privacy import public, without_paths
from benchmark.papers.printed.study import Printed
from benchmark.report import steps
from benchmark.report.inputs import Inputs, read_inputs
from benchmark.report.numbers import duration, interval, mean_sd, p_value, points
from benchmark.report.steps import write_tables
from benchmark.study import Variant


@pytest.fixture
def small_study():
    return made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1))


def test_inputs_read_back_what_the_steps_before_wrote(small_study, tmp_path):
    inputs = made_up_inputs(small_study)
    write_inputs(inputs, made_up_runs(small_study), tmp_path)
    loaded = read_inputs(small_study, tmp_path)
    assert loaded.missing == () and len(loaded.runs) == len(inputs.runs)
    assert loaded.paired["difference"].tolist() == pytest.approx(
        inputs.paired["difference"].tolist()
    )


@pytest.mark.parametrize("label", ["2011", "NA", "1e5", "true"])
def test_a_dataset_may_be_called_like_a_number(label, tmp_path):
    variants = tuple(Variant(loss, loss, {}) for loss in ("smooth_ap", "sup_ap"))
    block = made_up_block(variants, (32,), (0, 1, 2), datasets=(label,))
    study = made_up_study(blocks=(block,), seeds=(0, 1, 2))
    write_inputs(made_up_inputs(study), made_up_runs(study), tmp_path)
    loaded = read_inputs(study, tmp_path)
    assert set(loaded.paired["dataset"]) == {label}
    assert "paired" in {each.name for each in write_tables(loaded, tmp_path / "tables")}


def test_absent_files_are_named_and_give_empty_tables(small_study, tmp_path):
    loaded = read_inputs(small_study, tmp_path)
    assert (
        loaded.runs.empty and "runs.csv" in loaded.missing and "stats/paired.csv" in loaded.missing
    )


def test_reasons_lose_the_paths_of_the_machine(small_study):
    runs = made_up_runs(small_study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "no such folder: /home/someone/data/flowers"
    found = Inputs.of(small_study, run_table(runs), {}, Printed(), {}).runs
    assert set(found["reason"]) == {"", "no such folder: …/flowers"}


def test_public_data_keeps_facts_and_drops_people_hosts_and_paths():
    found = public(
        {"hostname": "box", "cpu": "A/B 3.0", "list": ["/data/x/y.pt", r"C:\Users\me\z.pt"], "n": 3}
    )
    assert found == {"cpu": "A/B 3.0", "list": ["…/y.pt", "…/z.pt"], "n": 3}
    assert without_paths("see https://example.org/a/b and glyphs/r10/x/bs32/seed0") == (
        "see https://example.org/a/b and glyphs/r10/x/bs32/seed0"
    )


def test_writing_takes_away_a_table_that_has_nothing_to_show_any_more(small_study, tmp_path):
    lost = made_up_inputs(small_study, bad={("sup_ap", 32, 0): "diverged"})
    write_tables(lost, tmp_path)
    assert (tmp_path / "missing.csv").is_file()
    records = {each.name: each for each in write_tables(made_up_inputs(small_study), tmp_path)}
    assert not (tmp_path / "missing.csv").exists()
    assert "all 4 runs finished" in records["missing"].reason
    assert "all 4 runs finished" in (tmp_path / "missing.md").read_text()


def test_a_step_that_was_killed_is_repeated(tmp_path, monkeypatch):
    study = made_up_study(losses=("smooth_ap",), seeds=(0,), tables=("cost",))
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(steps, "write_artefacts", broken)
        write_tables(made_up_inputs(study), tmp_path / "tables")
    assert (tmp_path / "tables" / "cost.csv").exists()
    write_tables(made_up_inputs(study), tmp_path / "tables")
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert names == {"contents.json", *(f"cost.{kind}" for kind in ("csv", "html", "md", "tex"))}


def broken(*_):
    raise KeyboardInterrupt


def test_a_study_that_names_its_tables_gets_these_only(tmp_path):
    study = made_up_study(losses=("smooth_ap",), seeds=(0,), tables=("cost", "comparison"))
    names = [each.name for each in write_tables(made_up_inputs(study), tmp_path)]
    assert names == ["cost", "comparison"]


def test_numbers_are_printed_with_real_minus_signs_and_without_false_precision():
    assert points(-0.00412) == "−0.41" and interval(-0.004, 0.009) == "[−0.40, +0.90]"
    assert mean_sd(0.8523, None) == "85.23" and mean_sd(0.8523, float("nan")) == "85.23"
    assert p_value(0.00004) == "<0.001" and p_value(0.0312) == "0.031" and p_value(None) == "–"
    assert [duration(value) for value in (3.21, 200, 3900)] == ["3.2 s", "3 min 20 s", "1 h 05 min"]
