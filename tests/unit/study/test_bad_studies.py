"""Each kind of problem has one clear message: what, where, what is allowed, the nearest name."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.datasets import DATASETS
from benchmark.study import load_study


@pytest.fixture
def problems_of(write_study):
    """Returns a function that loads a study and returns its problems."""

    def problems(study) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load_study(write_study(study))
        return [str(problem) for problem in caught.value.problems]

    return problems


def block(study):
    return study["blocks"][0]


def only(problems: list[str]) -> str:
    assert len(problems) == 1, problems
    return problems[0]


def test_unknown_loss_names_the_nearest(study_data, problems_of):
    block(study_data)["losses"].append("fastap")
    message = only(problems_of(study_data))
    assert message.startswith("blocks.0.losses.3 (line ")
    assert "did you mean 'fast_ap'?" in message


def test_unknown_dataset_names_the_nearest(study_data, problems_of):
    block(study_data)["datasets"] = ["glyph_tiny"]
    message = only(problems_of(study_data))
    assert "blocks.0.datasets.0" in message and "did you mean 'glyphs_tiny'?" in message


def test_dataset_for_evaluation_only_is_refused(study_data, problems_of):
    study_data["blocks"][0]["datasets"] = ["roxford5k"]
    study_data["metrics"] = ["map"]
    (problem,) = problems_of(study_data)
    assert problem.startswith("blocks.0.datasets.0 (line ")
    assert "'roxford5k' has no training images" in problem and "sfm120k" in problem


def test_wrong_dataset_parameter_is_named(study_data, problems_of):
    entry = {"name": "glyphs_tiny", "label": "tiny", "params": {"colour": "red"}}
    block(study_data)["datasets"] = [entry]
    message = only(problems_of(study_data))
    assert "blocks.0.datasets.0.params" in message and "'colour'" in message


def test_misspelt_hyperparameter_names_the_nearest(study_data, problems_of):
    study_data["losses"]["smooth_ap_wide"] = {"loss": "smooth_ap", "taw": 0.1}
    message = only(problems_of(study_data))
    assert message.startswith("losses.smooth_ap_wide.taw (line ")
    assert "did you mean 'tau'?" in message


def test_hyperparameter_out_of_range_says_what_is_allowed(study_data, problems_of):
    study_data["losses"]["smooth_ap_wide"]["tau"] = -1.0
    message = only(problems_of(study_data))
    assert "losses.smooth_ap_wide.tau" in message and "should be greater than 0" in message


def test_variant_of_an_unknown_loss(study_data, problems_of):
    study_data["losses"]["smooth_ap_wide"]["loss"] = "smoothap"
    assert "did you mean 'smooth_ap'?" in only(problems_of(study_data))


def test_variant_may_not_take_the_name_of_a_registered_loss(study_data, problems_of):
    study_data["losses"]["roadmap"] = {"loss": "smooth_ap", "tau": 0.1}
    assert "give the variant a label of its own" in only(problems_of(study_data))


def test_variant_that_no_block_asks_for(study_data, problems_of):
    study_data["losses"]["forgotten"] = {"loss": "smooth_ap", "tau": 0.2}
    assert "no block uses it" in only(problems_of(study_data))


def test_batch_size_not_divisible_by_samples_per_class(study_data, problems_of):
    block(study_data)["batch_sizes"] = [16, 30]
    message = only(problems_of(study_data))
    assert "blocks.0.batch_sizes" in message and "30" in message and "4" in message


def test_unknown_sampler(study_data, recipe_data, problems_of):
    recipe_data["sampler"]["name"] = "m_per_clas"
    assert "did you mean 'm_per_class'?" in only(problems_of(study_data))


def test_wrong_sampler_parameter(study_data, recipe_data, problems_of):
    recipe_data["sampler"]["params"] = {"samples_per_clas": 4}
    assert all("samples_per_clas" in message for message in problems_of(study_data))


def test_recipe_with_a_misspelt_key_names_its_file_and_line(study_data, recipe_data, problems_of):
    recipe_data["optimizer"] = {"learning_rate": 0.1}
    message = only(problems_of(study_data))
    assert "tiny.yaml: optimizer.learning_rate (line " in message


def test_recipe_value_out_of_range(study_data, recipe_data, problems_of):
    recipe_data["training"] = {"epochs": -1}
    message = only(problems_of(study_data))
    assert "training.epochs" in message and "greater than or equal to 0" in message


def test_missing_recipe_names_the_nearest(study_data, problems_of):
    block(study_data)["recipe"] = "tinyy"
    message = only(problems_of(study_data))
    assert "unknown recipe 'tinyy'; did you mean 'tiny'?" in message and "looked in" in message


@pytest.mark.parametrize("measured", [None, ["recall_at_1"]])
def test_unknown_metric(measured, study_data, problems_of):
    study_data["metrics"] = ["recall_at_1", "map_at_k"]
    block(study_data).update({"metrics": measured} if measured else {})
    assert "unknown metric 'map_at_k'" in only(problems_of(study_data))


def test_recall_that_the_recipe_does_not_measure(study_data, problems_of):
    study_data["metrics"] = ["recall_at_4"]
    message = only(problems_of(study_data))
    assert "'recall_at_4' is not measured" in message and "[1, 10]" in message


def test_metric_that_the_dataset_cannot_give(study_data, write_study, monkeypatch):
    monkeypatch.setattr(DATASETS["glyphs_tiny"].target, "metrics", ("map_at_r",))
    with pytest.raises(
        ConfigError, match="dataset 'glyphs_tiny' cannot give 'recall_at_1'; it gives: map_at_r"
    ):
        load_study(write_study(study_data))


def test_baseline_that_no_block_asks_for(study_data, problems_of):
    study_data["comparison"]["baseline"] = "fast_ap"
    message = only(problems_of(study_data))
    assert (
        "comparison.baseline" in message and "known: roadmap, smooth_ap, smooth_ap_wide" in message
    )


def test_ablation_loss_that_no_block_asks_for(study_data, problems_of):
    study_data["comparison"]["ablation"] = ["smooth_ap", "sup_ap"]
    assert "comparison.ablation.1" in only(problems_of(study_data))


@pytest.mark.parametrize(("key", "kind"), [("tables", "table"), ("figures", "figure")])
def test_unknown_table_or_figure(study_data, problems_of, key, kind):
    study_data[key] = ["no_such_thing"]
    assert f"unknown {kind} 'no_such_thing'" in only(problems_of(study_data))


def test_unknown_published_table(study_data, problems_of):
    study_data["references"] = {"published": ["smoothap2021"]}
    assert "did you mean 'smoothap2020'?" in only(problems_of(study_data))


def test_unknown_key_names_the_nearest(study_data, problems_of):
    study_data["metric"] = ["map"]
    message = only(problems_of(study_data))
    assert (
        message.startswith("metric (line ")
        and "unknown key 'metric'; did you mean 'metrics'?" in message
    )


def test_missing_key(study_data, problems_of):
    del study_data["title"]
    assert only(problems_of(study_data)).startswith("title (line 1)  Field required")


def test_empty_and_repeated_lists(study_data, problems_of):
    study_data |= {"seeds": [0, 0], "references": {"published": ["glyphs2030", "glyphs2030"]}}
    block(study_data)["batch_sizes"] = []
    problems = problems_of(study_data)
    for key in ("seeds", "references.published"):
        assert any(line.startswith(f"{key} (line") and "non-unique" in line for line in problems)
    assert any(line.startswith("blocks.0.batch_sizes (line") for line in problems)


def test_study_name_must_equal_the_file_name(study_data, problems_of):
    study_data["study"] = "large"
    assert "must equal the file name, 'small'" in only(problems_of(study_data))


def test_label_that_cannot_be_a_folder(study_data, problems_of):
    entry = {"name": "glyphs_tiny", "label": "a/b"}
    block(study_data)["datasets"] = [entry]
    assert "String should match pattern '^[A-Za-z0-9]" in only(problems_of(study_data))


def test_two_blocks_with_one_name(study_data, problems_of):
    study_data["blocks"].append(dict(block(study_data)))
    assert "'main' is used twice" in only(problems_of(study_data))


def test_one_dataset_label_twice_in_a_block(study_data, problems_of):
    block(study_data)["datasets"] = ["glyphs_tiny", {"name": "glyphs_1k", "label": "glyphs_tiny"}]
    assert any("label 'glyphs_tiny' is used twice" in line for line in problems_of(study_data))


def test_override_needs_an_option_and_an_option_an_override(study_data, problems_of):
    block(study_data)["override"] = {"training": {"epochs": 2}}
    study_data["blocks"].append(
        {**block(study_data), "name": "more", "override": {}, "option": "long"}
    )
    problems = problems_of(study_data)
    assert any("blocks.0.override" in line and "needs an 'option'" in line for line in problems)
    assert any("blocks.1.option" in line and "needs an 'override'" in line for line in problems)


def test_wrong_override_is_found_in_the_study_file(study_data, problems_of):
    block(study_data).update(option="long", override={"training": {"epoch": 2}})
    message = only(problems_of(study_data))
    assert message.startswith("blocks.0.override.training.epoch (line ")
    assert "did you mean 'epochs'?" in message


def test_two_blocks_asking_for_one_run_with_different_contents(
    study_data, problems_of, tmp_path, recipe_data
):
    import yaml

    (tmp_path / "recipes").mkdir()
    other = {**recipe_data, "training": {"epochs": 2}}
    (tmp_path / "recipes" / "other.yaml").write_text(yaml.safe_dump(other))
    study_data["blocks"].append(
        {**block(study_data), "name": "more", "recipe": "other", "losses": ["roadmap"]}
    )
    message = only(problems_of(study_data))
    assert (
        "'main' and 'more' ask for the same run with different contents (recipe.training)"
        in message
    )
    assert "first: glyphs_tiny/tinynet/roadmap/bs16/seed0" in message


def test_key_given_twice(study_data, problems_of, write_study):
    text = write_study(study_data).read_text() + "title: again\n"
    message = only(problems_of(text))
    assert "title (line " in message and "given twice" in message


def test_all_problems_of_fields_come_at_once_and_then_all_across_fields(study_data, problems_of):
    study_data["metric"] = []
    study_data["seeds"] = [-1]
    study_data["metrics"] = ["map_at_k"]
    study_data["losses"]["smooth_ap_wide"]["tau"] = 0
    study_data["comparison"]["baseline"] = "none"
    block(study_data)["losses"].append("fastap")
    block(study_data)["datasets"].append("glyph")
    block(study_data)["batch_sizes"].append(1)
    problems = problems_of(study_data)
    assert [line.split(" ")[0] for line in problems] == [
        "seeds.0",
        "blocks.0.batch_sizes.2",
        "metric",
    ]
    del study_data["metric"]
    study_data["seeds"] = [0]
    block(study_data)["batch_sizes"].pop()
    problems = problems_of(study_data)
    for part in ("map_at_k", "tau", "comparison.baseline", "fastap", "'glyph'"):
        assert any(part in line for line in problems), part


def test_wrong_types_everywhere_do_not_hide_each_other(problems_of):
    study = {
        "study": 3,
        "title": [],
        "seeds": "all",
        "losses": ["a"],
        "blocks": [1, {"name": "b", "losses": "x"}],
        "metrics": {},
        "comparison": "c",
    }
    places = {line.split(" ")[0] for line in problems_of(study)}
    assert {
        "study",
        "title",
        "seeds",
        "losses",
        "blocks.0",
        "blocks.1.datasets",
        "blocks.1.losses",
        "metrics",
        "comparison",
    } <= places
