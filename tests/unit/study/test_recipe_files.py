"""Recipe files: extending each other, sources, named options, and what they say about losses and
resources."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.study.model import ROOT
from benchmark.study.recipes import read_recipe


@pytest.fixture
def write_recipe(tmp_path):
    """Returns a function that writes a recipe beside the study's own."""

    def write(name, **content):
        (tmp_path / "recipes").mkdir(exist_ok=True)
        (tmp_path / "recipes" / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))

    return write


def run_of(path, setting="tinynet", loss="roadmap", dataset="glyphs_tiny"):
    return expand(load_study(path))[f"{dataset}/{setting}/{loss}/bs16/seed0"]


def test_a_recipe_takes_what_it_does_not_say_from_the_one_it_extends(
    study_data, write_study, write_recipe
):
    write_recipe("longer", extends="tiny", label="longnet", training={"epochs": 5})
    study_data["blocks"][0]["recipe"] = "longer"
    recipe = run_of(write_study(study_data), "longnet").spec.recipe
    assert recipe.training.epochs == 5
    assert recipe.model.backbone == "resnet10t"
    assert recipe.evaluation.recall_at == [1, 10]


def test_recipes_that_extend_each_other_in_a_circle_are_an_error(
    study_data, write_recipe, problems_of
):
    write_recipe("first", extends="second")
    write_recipe("second", extends="first")
    study_data["blocks"][0]["recipe"] = "first"
    assert problems_of(study_data) == [("circle", "blocks.0.recipe")]


def test_an_unknown_base_names_the_nearest(study_data, write_recipe, problems_of):
    write_recipe("longer", extends="tinny")
    study_data["blocks"][0]["recipe"] = "longer"
    assert problems_of(study_data) == [("unknown_name", "blocks.0.recipe")]


def test_a_value_written_anew_does_not_keep_the_old_source(
    study_data, recipe_data, write_study, write_recipe
):
    recipe_data["sources"] = {
        "model.backbone": "old",
        "model": "old",
        "sampler": "old",
        "evaluation": "old",
    }
    write_recipe(
        "other", extends="tiny", model={"backbone": "resnet14t"}, sources={"model.backbone": "new"}
    )
    study_data["blocks"][0]["recipe"] = "other"
    (block,) = load_study(write_study(study_data)).blocks
    assert block.sources["model.backbone"] == "new"
    assert block.sources["model"] == "old"


@pytest.mark.parametrize("sources", [None, [], "", "abc", [1]])
@pytest.mark.parametrize("extends", [{}, {"extends": "tiny"}])
def test_sources_that_are_no_mapping_are_one_problem(
    study_data, write_recipe, recipe_data, sources, extends, problems_of
):
    own = extends or recipe_data
    write_recipe("other", **own, sources=sources)
    study_data["blocks"][0]["recipe"] = "other"
    assert problems_of(study_data) == [("dict_type", "blocks.0.recipe")]


def test_a_block_asks_for_options_of_its_recipe_by_name_and_may_join_them(
    study_data, recipe_data, write_study
):
    recipe_data["options"] = {
        "long": {"training": {"epochs": 3}},
        "wide": {"model": {"embedding_dim": 64}},
    }
    study_data["blocks"][0]["option"] = "long~wide"
    recipe = run_of(write_study(study_data), "tinynet~long~wide").spec.recipe
    assert recipe.training.epochs == 3
    assert recipe.model.embedding_dim == 64


def test_hyperparameters_of_a_recipe_hold_unless_option_or_variant_say_otherwise(
    study_data, recipe_data, write_study
):
    recipe_data["losses"] = {"smooth_ap": {"tau": 0.02}, "roadmap": {"rho": 7.0}}
    recipe_data["options"] = {"paper": {"losses": {"roadmap": {"rho": 9.0}}}}
    path = write_study(study_data)
    assert run_of(path, loss="smooth_ap").spec.loss.params["tau"] == 0.02
    assert run_of(path, loss="smooth_ap_wide").spec.loss.params["tau"] == 0.1
    assert run_of(path).spec.loss.params["rho"] == 7.0
    study_data["blocks"][0]["option"] = "paper"
    assert run_of(write_study(study_data), "tinynet~paper").spec.loss.params["rho"] == 9.0


def test_a_loss_with_a_precision_of_its_own_keeps_the_rest_of_the_recipe(
    study_data, recipe_data, write_study
):
    plain = expand(load_study(write_study(study_data)))
    recipe_data["loss_precision"] = {"roadmap": "bfloat16"}
    found = expand(load_study(write_study(study_data)))
    for name, run in found.items():
        before = plain[name].spec
        if run.spec.loss.name != "roadmap":
            assert run.digest == plain[name].digest
            continue
        training = replace(before.recipe.training, precision="bfloat16")
        assert run.spec.recipe == replace(before.recipe, training=training)
    assert any(run.spec.loss.name == "roadmap" for run in found.values())


def test_roadmap_trains_blackbox_ap_alone_without_mixed_precision():
    found = {
        (run.spec.loss.name == "blackbox_ap", run.spec.recipe.training.precision)
        for run in expand(load_study("roadmap")).values()
        if "full_precision" not in run.spec.setting.options
    }
    assert found == {(True, "float32"), (False, "float16")}


def test_datasets_of_a_block_can_have_recipes_of_their_own(study_data, write_study, write_recipe):
    write_recipe("longer", extends="tiny", training={"epochs": 5})
    study_data["blocks"][0] |= {
        "datasets": ["glyphs_tiny", "glyphs_1k"],
        "recipe": {"glyphs_tiny": "tiny", "glyphs_1k": "longer"},
    }
    path = write_study(study_data)
    assert run_of(path).spec.recipe.training.epochs == 1
    assert run_of(path, dataset="glyphs_1k").spec.recipe.training.epochs == 5
    assert {block.name for block in load_study(path).blocks} == {"main"}


def test_a_mapping_of_recipes_names_every_dataset_of_the_block_and_no_other(
    study_data, problems_of
):
    study_data["blocks"][0] |= {
        "datasets": ["glyphs_tiny", "glyphs_1k"],
        "recipe": {"glyphs_tiny": "tiny", "sop": "tiny"},
    }
    assert problems_of(study_data) == [
        ("missing", "blocks.0.recipe"),
        ("unknown_name", "blocks.0.recipe"),
    ]


def test_resources_of_study_recipe_and_block_are_laid_over_each_other(
    study_data, recipe_data, write_study
):
    study_data["resources"] = {"gpus": 1, "mem_mb": 9000, "minutes": 5}
    plain = run_of(write_study(study_data))
    recipe_data["resources"] = {"minutes": 70}
    study_data["blocks"][0]["resources"] = {"mem_mb": 100}
    run = run_of(write_study(study_data))
    assert (run.resources.gpus, run.resources.mem_mb, run.resources.minutes) == (1, 100, 70)
    assert run.digest == plain.digest


def test_a_block_can_give_some_of_the_studys_metrics(study_data, write_study, problems_of):
    study_data["metrics"].append("recall_at_5")
    assert problems_of(study_data) == [("not_measured", "metrics.2")]
    study_data["blocks"][0]["metrics"] = ["recall_at_1", "map_at_r"]
    assert load_study(write_study(study_data)).metrics == ("recall_at_1", "map_at_r", "recall_at_5")
    study_data["blocks"][0]["metrics"] = ["map"]
    assert problems_of(study_data) == [("unknown_name", "blocks.0.metrics.0")]


OTHER_READING = """
study: other_reading
title: what a paper's text says where its code does otherwise
seeds: [0, 1]
blocks:
  - {{name: main, datasets: [{dataset}], recipe: {recipe}, losses: [{loss}], batch_sizes: [{size}],
     option: {option}}}
metrics: [recall_at_1]
comparison: {{baseline: {loss}}}
"""
CROPS = {"train_resize": "square", "crop": "random", "keep_aspect": False}
DRAWN = {"samples_per_class": 4, "classes": "uniform"}


@pytest.mark.parametrize(
    ("dataset", "recipe", "loss", "size", "option", "values"),
    [
        (
            "vehicleid",
            "smooth_ap_vehicleid_resnet50",
            "smooth_ap",
            384,
            "earlier_milestones",
            {"schedule": {"milestones": [120, 200, 220, 250, 280, 300, 300]}},
        ),
        *(
            (
                dataset,
                f"smooth_ap_{dataset}_resnet50",
                "smooth_ap",
                224,
                "paper",
                {
                    "input": CROPS,
                    "optimizer": {"weight_decay": 4e-5},
                    "sampler": {"name": "m_per_class", "params": DRAWN},
                },
            )
            for dataset in ("vehicleid", "inaturalist")
        ),
        (
            "inaturalist",
            "smooth_ap_inaturalist_fast_ap",
            "fast_ap",
            224,
            "categories",
            {"sampler": {"name": "category_windows", "params": {"batches_per_pair": 5}}},
        ),
        (
            "cub",
            "roadmap_cub_resnet50",
            "roadmap",
            64,
            "sota~paper",
            {
                "input": {"image_size": 256},
                "model": {"pooling": "max"},
                "sampler": {"params": DRAWN},
            },
        ),
        (
            "inaturalist",
            "roadmap_inaturalist_deit_s",
            "roadmap",
            64,
            "paper",
            {"sampler": {"params": DRAWN}},
        ),
    ],
)
def test_the_other_reading_of_a_paper_can_be_trained(
    tmp_path, dataset, recipe, loss, size, option, values
):
    path = tmp_path / "other_reading.yaml"
    words = {"dataset": dataset, "recipe": recipe, "loss": loss, "size": size, "option": option}
    path.write_text(OTHER_READING.format(**words))
    specs = [run.spec for run in expand(load_study(path)).values()]
    assert {spec.batch_size for spec in specs} == {size}
    for section, stated in values.items():
        found = getattr(specs[0].recipe, section)
        for key, value in stated.items():
            ours = getattr(found, key)
            if key == "params":
                ours = {name: ours[name] for name in value}
            assert ours == value, (section, key)


def test_milestones_of_vehicleid_are_offered_for_no_other_dataset():
    for recipe in ("sop_resnet50", "inaturalist_resnet50", "vggface2_senet50"):
        file = read_recipe(f"smooth_ap_{recipe}", ROOT / "workflow" / "config" / "smooth_ap.yaml")
        assert "earlier_milestones" not in file.options
