"""A study on a stand-in keeps losses, options and batch sizes, and says what it is."""

from __future__ import annotations

import shlex

import pytest
import yaml

from benchmark.core.errors import ConfigError
from benchmark.study import find_study, load_study
from benchmark.study.grid import expand
from benchmark.study.stand_in import LARGEST_BATCH, base_of, capped, kept, stand_in_name
from benchmark.study.workflow import load_flow


@pytest.fixture
def real(tmp_path, study_data, recipe_data, write_study):
    """Returns the path of a small study whose recipe has an option and a stand-in."""
    stand_in = {
        **recipe_data,
        "label": "small",
        "model": {"backbone": "test_resnet", "channels": 1},
    }
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "small_stand_in.yaml").write_text(yaml.safe_dump(stand_in))
    recipe_data |= {
        "stand_in": "small_stand_in",
        "losses": {"smooth_ap": {"tau": 0.05}},
        "options": {
            "sota": {
                "model": {"embedding_dim": 32},
                "input": {"image_size": 64},
                "memory": {"size": 8},
                "training": {"epochs": 2},
            }
        },
    }
    block = study_data["blocks"][0]
    block |= {
        "datasets": ["glyphs", "glyphs_1k"],
        "batch_sizes": [16, 512, 256],
        "seeds": [3, 4, 5],
    }
    study_data["blocks"].append({**block, "name": "more", "option": "sota"})
    study_data["references"] = {"published": ["roadmap2021v2"]}
    return write_study(study_data)


def test_every_block_keeps_its_losses_options_and_capped_batch_sizes(real):
    study = load_study(stand_in_name(real, "glyphs_tiny"))
    runs = expand(study)
    assert study.name == "small-on-glyphs_tiny" and study.stand_in == "glyphs_tiny"
    assert study.references.published == ("roadmap2021v2",) and study.references.frozen is None
    assert len(runs) == 2 * 3 * 2 * 2
    assert {run.spec.batch_size for run in runs.values()} == {16, LARGEST_BATCH}
    assert {run.spec.seed for run in runs.values()} == {3, 4}
    assert {run.spec.setting.label for run in runs.values()} == {"small_small", "small_small~sota"}
    assert {run.spec.dataset.name for run in runs.values()} == {"glyphs_tiny"}
    assert {run.resources.gpus for run in runs.values()} == {0}


def test_options_change_what_means_the_same_on_small_images(real):
    runs = expand(load_study(stand_in_name(real, "glyphs_tiny")))
    recipe = runs["glyphs_tiny/small_small~sota/roadmap/bs16/seed3"].spec.recipe
    assert recipe.model.embedding_dim == 32 and recipe.memory.size == 8
    block = load_study(stand_in_name(real, "glyphs_tiny")).blocks[-1]
    assert set(block.overrides) == {"model", "memory", "losses"}, "only what is laid over it"
    assert recipe.model.backbone == "test_resnet" and recipe.input.image_size == 224
    assert runs["glyphs_tiny/small_small/smooth_ap/bs16/seed3"].spec.loss.params["tau"] == 0.05


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ((32, 512), (32, LARGEST_BATCH)),
        ((224, 384), (LARGEST_BATCH,)),
        ((32, 256, 512), (32, LARGEST_BATCH)),
        ((256, 4096, 1024), (LARGEST_BATCH, LARGEST_BATCH * 4, LARGEST_BATCH * 2)),
    ],
)
def test_a_sweep_of_large_batches_stays_a_sweep(sizes, found):
    assert capped(sizes) == found


def test_options_of_sampling_and_weighting_are_not_the_plain_runs_on_a_stand_in():
    fast_ap, listwise = (
        expand(load_study(f"{name}-on-glyphs_1k")) for name in ("fast_ap", "listwise")
    )
    setting = "glyphs_1k/test_resnet_stand_in"
    plain, random = (
        fast_ap[f"{setting}_fast_ap{option}/fast_ap/bs128/seed0"].spec.recipe
        for option in ("", "~random")
    )
    assert plain.sampler.name == "category_windows" and random.sampler.name == "class_windows"
    uniform = listwise[f"{setting}_listwise~uniform/softbin_ap/bs128/seed0"].spec
    assert (
        uniform.recipe.sampler.name == "random"
        and uniform.loss.params["query_weights"] == "uniform"
    )


def test_stand_ins_of_two_studies_share_no_run():
    first, second = (
        set(expand(load_study(f"{name}-on-glyphs_1k"))) for name in ("fast_ap", "smooth_ap")
    )
    assert first and not first & second, "one would make the other's results stale"


def test_every_recall_of_the_printed_tables_is_measured_on_a_stand_in():
    for name, asked in {
        "roadmap": {1, 2, 4, 8, 16, 32, 1000},
        "fast_ap": {5, 20, 50, 1000},
    }.items():
        runs = expand(load_study(f"{name}-on-glyphs_1k"))
        measured = {tuple(run.spec.recipe.evaluation.recall_at) for run in runs.values()}
        assert len(measured) == 1 and asked <= set(*measured)


def test_only_named_parts_of_an_override_are_kept():
    assert kept({"training": {"epochs": 9}, "model": {"backbone": "x", "pooling": "max"}}) == {
        "model": {"pooling": "max"}
    }


def test_a_study_and_its_stand_in_have_other_digests_and_folders(real):
    study, other = load_study(real), load_study(stand_in_name(real, "glyphs_tiny"))
    assert study.stand_in is None and study.digest != other.digest
    assert study.folder("results") != other.folder("results")


@pytest.mark.parametrize(
    ("study", "name"),
    [("roadmap", "roadmap-on-glyphs"), ("a-on-b/x.yaml", "a-on-b/x-on-glyphs.yaml")],
)
def test_names_and_paths_of_stand_ins_lead_back_to_their_study(study, name):
    assert stand_in_name(study, "glyphs") == name and base_of(name) == study


@pytest.mark.parametrize("name", ["roadmap", "a-on-b/roadmap", "-on-glyphs"])
def test_other_names_are_no_stand_ins(name):
    assert not base_of(name)


def test_an_unknown_dataset_and_a_recipe_without_stand_in_are_named(
    real, study_data, write_study, recipe_data
):
    with pytest.raises(ConfigError, match="did you mean 'glyphs_tiny'"):
        load_study(stand_in_name(real, "glyph_tiny"))
    with pytest.raises(ConfigError, match="'rparis6k' has no training images"):
        load_study(stand_in_name(real, "rparis6k"))
    del recipe_data["stand_in"]
    with pytest.raises(ConfigError, match="recipe 'tiny' names no stand_in"):
        load_study(stand_in_name(write_study(study_data), "glyphs_tiny"))


def test_a_study_that_does_not_exist_has_no_stand_in(tmp_path):
    with pytest.raises(ConfigError, match="no such study file"):
        find_study(tmp_path / "nothing-on-glyphs_tiny.yaml")


def test_the_workflow_takes_the_stand_in_as_a_setting(real):
    flow = load_flow({"study": str(real), "dataset": "glyphs_tiny", "results": "r"})
    assert flow.folder == "r/small-on-glyphs_tiny"
    with_file = {**yaml.safe_load(real.read_text()), "dataset": "glyphs_tiny"}
    assert load_flow(with_file, [real]).study.name == "small-on-glyphs_tiny"
    assert load_study(shlex.split(flow.arguments)[0]).digest == flow.study.digest


def test_where_blocks_differ_in_a_loss_the_first_ones_hyperparameters_are_used(
    real, tmp_path, study_data, write_study
):
    other = {"extends": "tiny", "losses": {"smooth_ap": {"tau": 0.5}}}
    (tmp_path / "recipes" / "other.yaml").write_text(yaml.safe_dump(other))
    study_data["blocks"].append(
        {**study_data["blocks"][0], "name": "third", "datasets": ["glyphs_tiny"], "recipe": "other"}
    )
    runs = expand(load_study(stand_in_name(write_study(study_data), "glyphs_tiny")))
    run = runs["glyphs_tiny/small_small/smooth_ap/bs16/seed3"]
    assert run.spec.loss.params["tau"] == 0.05 and run.blocks == ("main", "third")
