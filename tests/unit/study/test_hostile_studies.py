"""Studies of more than anybody runs, or that name files elsewhere: refused at once."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study import load_study
from benchmark.study.grid import conflicts, different_parts


def refusal(path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_study(path)
    return str(caught.value)


def test_more_runs_than_anybody_makes_are_refused(study_data, write_study):
    study_data["seeds"] = list(range(60_000))
    assert "runs (allowed: 100,000); divide the study" in refusal(write_study(study_data))


def test_equal_blocks_are_compared_with_the_first_alone(study_data, write_study, monkeypatch):
    first = study_data["blocks"][0]
    study_data["blocks"] = [{**first, "name": f"b{number}"} for number in range(40)]
    blocks = list(load_study(write_study(study_data)).blocks)
    compared = []

    def counted(one, other):
        compared.append(1)
        return different_parts(one, other)

    monkeypatch.setattr("benchmark.study.grid.different_parts", counted)
    assert conflicts(blocks) == []
    assert len(compared) <= 39 * sum(1 for _ in blocks[0].specs())


def test_a_metric_of_thousands_of_digits_is_unknown(study_data, write_study):
    study_data["metrics"] = [f"recall_at_{'9' * 4400}"]
    message = refusal(write_study(study_data))
    assert "metrics.0 (line " in message and "unknown metric 'recall_at_999" in message


def test_what_a_recipe_measures_has_the_name_of_a_metric(study_data, write_study):
    study_data["blocks"][0]["override"] = {"evaluation": {"recall_at": [10**9]}}
    message = refusal(write_study(study_data))
    assert "evaluation.recall_at.0 (line " in message and "999999999" in message


@pytest.mark.parametrize("path", ["/etc/passwd", "../frozen.csv", "a/../../b.csv"])
def test_frozen_runs_lie_below_the_working_directory(study_data, write_study, path):
    study_data["references"] = {"frozen": path}  # 'freeze' writes there
    assert "references.frozen (line " in refusal(write_study(study_data))


@pytest.mark.parametrize("path", [".", "folder", "new/"])
def test_frozen_runs_are_a_file_that_has_a_name(
    study_data, write_study, tmp_path, monkeypatch, path
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    study_data["references"] = {"frozen": path}
    message = refusal(write_study(study_data))
    assert "references.frozen (line " in message and "results/reference/small.csv" in message
    for name in ("folder/f.csv", "f~.csv", "new/f.csv"):
        study_data["references"] = {"frozen": name}
        assert load_study(write_study(study_data)).references.frozen == name


@pytest.mark.parametrize("name", ["../x", "/etc", "a/b"])
def test_the_study_of_the_trials_is_a_name(study_data, write_study, name):
    study_data["references"] = {"trials": name}  # 'freeze' makes a folder of this name
    assert "references.trials (line " in refusal(write_study(study_data))


@pytest.mark.parametrize("field", ["nowhere", "", "results", "n" * 300, "a\0b"])
def test_a_field_without_frozen_runs_is_refused(field, study_data, write_study):
    study_data |= {"references": {"field": field}}
    message = refusal(write_study(study_data))
    assert "references.field (line " in message and "runs.csv is not there" in message
    assert "freeze STUDY --out FOLDER" in message and "results/reference/reality_check" in message


def test_the_field_of_a_study_with_rules_holds_trials_too(study_data, write_study, tmp_path):
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "runs.csv").touch()
    study_data |= {"references": {"field": str(tmp_path)}, "rules": {"trials": [1]}}
    assert str(tmp_path / "trials" / "runs.csv") in refusal(write_study(study_data))


def test_no_loss_comes_twice_in_an_ablation(study_data, write_study):
    study_data["comparison"] = {"baseline": "fast_ap", "ablation": ["fast_ap", "sup_ap", "fast_ap"]}
    assert "comparison.ablation (line " in (text := refusal(write_study(study_data)))
    assert "non-unique" in text


@pytest.mark.parametrize("alpha", [1e-16, 1e-4, 0.51, 0.9999999999999999])
def test_an_error_rate_that_no_test_is_made_for_is_refused(alpha, study_data, write_study):
    """At 1e-16 the search for what a test can see did not end."""
    study_data["comparison"] = {"baseline": "fast_ap", "alpha": alpha}
    assert "comparison.alpha (line " in refusal(write_study(study_data))
