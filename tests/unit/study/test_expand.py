"""A study expands to complete specifications, each run once."""

from __future__ import annotations

import cProfile
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml
from workplace import ROOT, small_study

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import OptimizerConfig, SamplerConfig
from benchmark.datasets import load_dataset, training_images
from benchmark.input.samplers import create_sampler
from benchmark.study import load_study
from benchmark.study.grid import expand


def test_every_cell_of_the_grid_becomes_one_run(study_data, write_study):
    runs = expand(load_study(write_study(study_data)))
    assert len(runs) == 3 * 2 * 2
    run = runs["glyphs_tiny/tinynet/smooth_ap_wide/bs32/seed1"]
    assert run.spec.run_id == "glyphs_tiny/tinynet/smooth_ap_wide/bs32/seed1"
    assert run.spec.loss.name == "smooth_ap"
    assert run.spec.loss.label == "smooth_ap_wide"
    assert (run.spec.batch_size, run.spec.seed, run.blocks) == (32, 1, ("main",))
    assert run.digest == run.spec.digest


def test_specifications_are_complete(study_data, write_study):
    from benchmark.core.options import options_of
    from benchmark.losses.catalogue import load_catalogue

    run = expand(load_study(write_study(study_data)))[
        "glyphs_tiny/tinynet/smooth_ap_wide/bs16/seed0"
    ]
    assert run.spec.loss.params["tau"] == 0.1
    assert set(run.spec.loss.params) == set(options_of(load_catalogue()["smooth_ap"].config))
    recipe = run.spec.recipe
    assert recipe.training.epochs == 1
    assert recipe.optimizer == OptimizerConfig()


def test_shared_runs_appear_once_and_know_their_blocks(study_data, write_study):
    more = {**study_data["blocks"][0], "name": "more", "batch_sizes": [32, 64]}
    study_data["blocks"].append(more)
    runs = expand(load_study(write_study(study_data)))
    assert len(runs) == 3 * 3 * 2
    assert runs["glyphs_tiny/tinynet/roadmap/bs32/seed0"].blocks == ("main", "more")
    assert runs["glyphs_tiny/tinynet/roadmap/bs64/seed0"].blocks == ("more",)


def test_options_and_overrides_make_runs_of_their_own(study_data, write_study):
    block = study_data["blocks"][0]
    long = {
        **block,
        "name": "long",
        "option": "long",
        "override": {"training": {"epochs": 3}},
        "seeds": [7],
    }
    study_data["blocks"].append(long)
    runs = expand(load_study(write_study(study_data)))
    plain = runs["glyphs_tiny/tinynet/roadmap/bs16/seed0"].spec.recipe
    changed = runs["glyphs_tiny/tinynet~long/roadmap/bs16/seed7"].spec.recipe
    assert (plain.training.epochs, changed.training.epochs) == (1, 3)
    assert replace(plain, training=changed.training) == changed


def test_another_sampler_does_not_inherit_parameters(study_data, write_study):
    block = study_data["blocks"][0]
    block.update(option="drawn", override={"sampler": {"name": "random"}})
    runs = expand(load_study(write_study(study_data)))
    assert next(iter(runs.values())).spec.recipe.sampler == SamplerConfig(name="random")


def test_resources_do_not_change_the_specification(study_data, write_study):
    before = expand(load_study(write_study(study_data)))
    study_data["resources"] = {"gpus": 1, "mem_mb": 9000, "minutes": 5}
    after = expand(load_study(write_study(study_data)))
    assert {name: run.digest for name, run in before.items()} == {
        name: run.digest for name, run in after.items()
    }
    assert next(iter(after.values())).resources.mem_mb == 9000


def test_one_changed_hyperparameter_changes_exactly_its_runs(study_data, write_study):
    before = expand(load_study(write_study(study_data)))
    study_data["losses"]["smooth_ap_wide"]["tau"] = 0.2
    after = expand(load_study(write_study(study_data)))
    changed = {name for name in before if before[name].digest != after[name].digest}
    assert changed == {name for name in before if "/smooth_ap_wide/" in name}


def test_a_number_written_with_an_exponent_is_a_number(study_data, write_study):
    text = write_study(study_data).read_text().replace("tau: 0.1", "tau: 1e-1")
    assert load_study(write_study(text)).losses["smooth_ap_wide"].params["tau"] == 0.1


def test_digest_of_a_study_follows_the_file_and_its_recipe(study_data, recipe_data, write_study):
    first = load_study(write_study(study_data)).digest
    assert load_study(write_study(study_data)).digest == first
    recipe_data["training"] = {"epochs": 2}
    second = load_study(write_study(study_data)).digest
    study_data["title"] = "Another title"
    assert len({first, second, load_study(write_study(study_data)).digest}) == 3


def test_many_runs_expand_in_linear_time(study_data, write_study):
    study = load_study(write_study(study_data))

    def calls(seeds):
        many = replace(study, blocks=(replace(study.blocks[0], seeds=tuple(range(seeds))),))
        assert len(expand(many)) == 6 * seeds
        profile = cProfile.Profile()
        profile.runcall(expand, many)
        return sum(each.callcount for each in profile.getstats())

    few = calls(100)
    many = calls(200)
    assert many < 2.2 * few


def test_loading_and_expanding_never_import_torch(study_data, write_study):
    code = (
        "import sys; from benchmark.study import load_study; from benchmark.study.grid import "
        "expand; "
        f"sys.path.append({str(ROOT / 'workflow')!r}); "
        "import benchmark.runs.run_table, benchmark.runs.plan, study_flow; "
        f"expand(load_study({str(write_study(study_data))!r})); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_row_of_no_training_has_no_epoch_and_no_memory_beside_trained_ones(
    study_data, recipe_data, write_study
):
    recipe_data["memory"] = {"size": -1}
    study_data["losses"], study_data["blocks"][0]["losses"] = {}, ["smooth_ap", "untrained"]
    study_data["comparison"] = {"baseline": "smooth_ap"}
    runs = expand(load_study(write_study(study_data))).values()
    specs = {run.spec.loss.name: run.spec for run in runs}
    trained = specs["smooth_ap"]
    untrained = specs["untrained"]
    assert trained.recipe.training.epochs == 1
    assert trained.recipe.memory.size == -1
    assert untrained.recipe.training.epochs == 0
    assert untrained.recipe.memory.size is None
    assert untrained.setting == trained.setting


def loaded(folder, **changes):
    study = small_study("small", ["smooth_ap"])
    study["blocks"][0] |= {"batch_sizes": [32, "all"], **changes}
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return load_study(str(path))


def test_all_becomes_the_number_of_training_images(tmp_path):
    sizes = [run.spec.batch_size for run in expand(loaded(tmp_path)).values()]
    assert sizes == [32, 32, 346, 346]


@pytest.mark.parametrize("name", ["glyphs_tiny", "glyphs_1k", "glyphs"])
def test_the_published_number_of_training_glyphs_is_that_of_the_dataset(name):
    assert training_images(name) == len(load_dataset(name).train)


def test_datasets_that_differ_in_it_are_refused_with_what_to_do(tmp_path, messages):
    with messages.raised(("unknown_size", "blocks.0.batch_sizes.1")):
        loaded(tmp_path, datasets=["glyphs_tiny", "glyphs_1k"])
    with pytest.raises(ConfigError, match=r"batch_sizes\.0"):
        loaded(tmp_path, batch_sizes=["everything"])


def test_every_epoch_is_one_batch_of_all_images_in_another_order():
    labels = np.arange(50) // 4
    sampler = create_sampler(
        "m_per_class",
        {"samples_per_class": 4},
        labels=labels,
        categories=None,
        batch_size=50,
        seed=0,
    )
    (first,), (second,) = sampler.epoch(0), sampler.epoch(1)
    assert sorted(first) == sorted(second) == list(range(50))
    assert not np.array_equal(first, second)
