"""The workflow's settings: names stay as they were typed, or the mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from study_flow import load_flow
from workplace import small_study

from benchmark.cli.running import snakemake_arguments


@pytest.mark.parametrize("value", [1.1, 7, 20241121, True, {"a": "b"}])
def test_a_name_that_snakemake_has_read_as_something_else_is_refused(value, messages):
    with messages.raised():
        load_flow({"study": "smoke", "results": value})


def test_all_problems_of_the_settings_are_named_at_once(messages):
    with messages.raised():
        load_flow({"study": 7, "results": "a{b}", "reslts": "x"})


def test_a_file_or_an_address_in_the_place_of_the_results_is_refused(tmp_path, messages):
    (tmp_path / "file").touch()
    for results in (f"{tmp_path}/file", "s3://bucket"):
        with messages.raised():
            load_flow({"study": "smoke", "results": results})


def test_a_setting_whose_name_is_no_text_is_named(messages):
    with messages.raised():
        load_flow({1: 2, "b": 3})


@pytest.mark.parametrize("name", ["1.10", "007", "./1.10", "with blank", "naïve"])
def test_a_results_folder_keeps_its_name(name):
    flow = load_flow({"study": "smoke", "results": name})
    assert flow.results == name.removeprefix("./")
    assert flow.files("result.json")[0].startswith(f"{flow.results}/runs/")


def test_arguments_of_verbs_name_shipped_studies_and_the_paths_of_others(tmp_path, monkeypatch):
    shipped = load_flow({"study": "smoke"})
    assert shipped.arguments == "smoke --results results"
    other = load_flow({"study": "reality_check", "dataset": "cub"})
    assert other.asked_in("results") == "reality_check-on-cub --results results"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "own.yaml").write_text(yaml.safe_dump(small_study("own", ["sup_ap"])))
    own = load_flow({"study": "a b/own.yaml"})
    assert own.arguments == "'a b/own.yaml' --results results"


@pytest.mark.parametrize(
    ("study", "results"),
    [("dir #2/small.yaml", "results")]
    + [("small.yaml", name) for name in ("a #b", "a ", " ", "a\nb", "x: y", "a:")],
)
def test_a_study_or_a_folder_that_yaml_reads_as_another_is_refused(study, results, messages):
    with messages.raised():
        snakemake_arguments(Path(study), "2", Path(results))


@pytest.mark.parametrize("name", ["1.10", "[a", "*a", "with blank", "naïve"])
def test_another_folder_is_handed_over_as_it_is(name):
    assert snakemake_arguments(Path("small.yaml"), "2", Path(name))[-1] == f"results=./{name}"
