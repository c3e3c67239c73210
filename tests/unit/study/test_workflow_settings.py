"""The workflow's settings: names stay as they were typed, or the mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from study_flow import load_flow
from workplace import small_study

from benchmark.cli.running import snakemake_arguments
from benchmark.core.errors import ConfigError


@pytest.mark.parametrize("value", [1.1, 7, 20241121, True, {"a": "b"}])
def test_a_name_that_snakemake_has_read_as_something_else_is_refused(value):
    with pytest.raises(ConfigError, match=r"results was read as the .*; write results=\./NAME"):
        load_flow({"study": "smoke", "results": value})


def test_all_problems_of_the_settings_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        load_flow({"study": 7, "results": "a{b}", "reslts": "x"})
    message = str(caught.value)
    assert "3 problems" in message
    assert "unknown setting reslts" in message
    assert "study was read as the int 7" in message
    assert "braces" in message


def test_a_file_in_the_place_of_the_results_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file is a file; choose another place"):
        load_flow({"study": "smoke", "results": f"{tmp_path}/file"})


def test_an_address_is_no_folder_of_results():
    with pytest.raises(ConfigError, match="results=s3://bucket is a URL"):
        load_flow({"study": "smoke", "results": "s3://bucket"})


def test_a_setting_whose_name_is_no_text_is_named():
    with pytest.raises(ConfigError, match=r"unknown setting 1, b; allowed.*the study's file"):
        load_flow({1: 2, "b": 3})


@pytest.mark.parametrize("name", ["1.10", "007", "./1.10", "with blank", "naïve"])
def test_a_results_folder_keeps_its_name(name):
    flow = load_flow({"study": "smoke", "results": name})
    assert flow.results == name.removeprefix("./")
    assert flow.files("result.json")[0].startswith(f"{flow.results}/runs/")


def test_arguments_of_verbs_name_shipped_studies_and_the_paths_of_others(tmp_path, monkeypatch):
    assert load_flow({"study": "smoke"}).arguments == "smoke --results results"
    other = load_flow({"study": "reality_check", "dataset": "cub"})
    assert other.asked_in("results") == "reality_check-on-cub --results results"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "own.yaml").write_text(yaml.safe_dump(small_study("own", ["sup_ap"])))
    assert load_flow({"study": "a b/own.yaml"}).arguments == "'a b/own.yaml' --results results"


@pytest.mark.parametrize("name", ["a #b", "a ", " ", "a\nb", "x: y", "a:"])
def test_a_folder_that_yaml_reads_as_another_is_refused(name):
    with pytest.raises(ConfigError, match="cannot be handed to Snakemake"):
        snakemake_arguments(Path("small.yaml"), "2", Path(name))


def test_a_study_that_yaml_reads_as_another_is_refused():
    with pytest.raises(ConfigError, match="cannot be handed to Snakemake"):
        snakemake_arguments(Path("dir #2/small.yaml"), "2", Path("results"))


@pytest.mark.parametrize("name", ["1.10", "[a", "*a", "with blank", "naïve"])
def test_another_folder_is_handed_over_as_it_is(name):
    assert snakemake_arguments(Path("small.yaml"), "2", Path(name))[-1] == f"results=./{name}"
