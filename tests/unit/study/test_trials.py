"""A study with rules expands to trials, and its selection to a study of final runs."""

from __future__ import annotations

from dataclasses import make_dataclass, replace

import pytest
import yaml
from study_flow import load_flow

from benchmark.core.options import option
from benchmark.core.records import Setting
from benchmark.study import load, load_study
from benchmark.study.grid import expand
from benchmark.study.model import name_on
from benchmark.study.trials import (
    Choice,
    final_columns,
    read_choices,
    sobol,
    trial_columns,
    value_at,
    write_selected,
)


@pytest.fixture
def ruled(study_data, write_study):
    """Return the path of a small study with rules."""
    study_data["rules"] = {"trials": [2, 1], "folds": 2, "final_seeds": 2}
    study_data["comparison"]["ablation"] = []
    study_data["blocks"][0] |= {"batch_sizes": [16]}
    return write_study(study_data)


def settings_of(study, loss):
    blocks = [block for block in study.blocks if loss in [each.label for each in block.losses]]
    return [(block.recipe.optimizer, block.losses[0].params) for block in blocks]


def test_every_loss_gets_the_same_number_of_trials_on_every_fold(ruled):
    study = load_study(ruled)
    runs = expand(study)
    assert len(runs) == 3 * (1 + 2) * 2 * 2  # losses, settings, folds, seeds
    assert {run.spec.dataset.name for run in runs.values()} == {"class_folds"}
    assert "glyphs_tiny.fold1/tinynet~trial02/roadmap/bs16/seed1" in runs


def test_the_first_setting_is_the_published_one_and_what_the_study_sets_stays(ruled):
    study = load_study(ruled)
    published, *drawn = settings_of(study, "smooth_ap_wide")
    assert published == (
        study.trials.blocks[0].recipe.optimizer,
        {"tau": 0.1, "include_query": True},
    )
    assert all(params["tau"] == 0.1 for _, params in drawn)
    assert len({params["tau"] for _, params in settings_of(study, "smooth_ap")}) == 3


def test_drawn_values_lie_in_their_ranges_and_small_budgets_are_parts_of_large_ones():
    points = sobol("some_loss", 3, 16)
    assert points[:4] == sobol("some_loss", 3, 4)
    assert points != sobol("other_loss", 3, 16)
    rates = [value_at({"times": [0.1, 10.0]}, x, 0.01) for x, _, _ in points]
    assert 0.001 <= min(rates) < 0.005
    assert 0.03 < max(rates) <= 0.1
    whole = {"linear": [1, 9]}
    assert all(isinstance(value_at(whole, x, 4, whole=True), int) for _, x, _ in points)
    assert {value_at({"among": [2, 4, 8]}, x, 4) for *_, x in points} == {2, 4, 8}


def test_all_problems_of_rules_are_told_at_once(study_data, problems_of):
    study_data["rules"] = {"trials": [0], "folds": 1, "finalseeds": 2, "instead": {"cubs": "tiny"}}
    assert problems_of(study_data) == [
        ("greater_than_equal", "rules.trials.0"),
        ("greater_than_equal", "rules.folds"),
        ("unknown_name", "rules.finalseeds"),
    ]


def test_a_batch_that_a_trial_cannot_fill_is_found_before_anything_starts(study_data, problems_of):
    study_data["rules"] = {"trials": [8]}
    study_data["blocks"][0]["batch_sizes"] = [20]
    assert set(problems_of(study_data)) == {("wrong_trial", "rules.trials")}


@pytest.mark.parametrize(
    ("search", "default", "code"),
    [
        ({"linear": [-1.0, 1.0]}, 0.01, "wrong_trial"),
        ({"among": ["a", "b"]}, 0.01, "wrong_trial"),
        ({"times": [0.1, 10.0]}, None, ""),
    ],
)
def test_a_range_that_no_run_could_take_is_found_before_anything_starts(
    study_data, problems_of, monkeypatch, search, default, code
):
    known = load.load_catalogue()
    tau = ("tau", float, option(default, above=0.0, search=search))
    losses = known | {"smooth_ap": replace(known["smooth_ap"], config=make_dataclass("C", [tau]))}
    monkeypatch.setattr(load, "load_catalogue", lambda: losses)
    study_data |= {"rules": {"trials": [4]}, "losses": {}}
    study_data["blocks"][0] |= {"batch_sizes": [16], "losses": ["smooth_ap", "roadmap"]}
    study_data["comparison"] = {"baseline": "roadmap"}
    (problem,) = problems_of(study_data)
    assert problem[0] == code


def test_the_same_study_runs_on_another_dataset_that_it_names(study_data, write_study, messages):
    study_data["rules"] = {"trials": [1], "instead": {"glyphs_1k": "tiny"}}
    path = write_study(study_data)
    study = load_study(name_on(path, "glyphs_1k"))
    assert study.name == "small-on-glyphs_1k"
    assert {dataset.label for block in study.blocks for dataset in block.datasets} == {
        "glyphs_1k.fold0",
        "glyphs_1k.fold1",
    }
    with messages.raised():
        load_study(name_on(path, "glyphs"))


def test_the_selection_becomes_an_ordinary_study_of_fresh_seeds(ruled, tmp_path):
    study = load_study(ruled)
    override = {"optimizer": {"lr": 0.5}, "losses": {"smooth_ap": {"tau": 0.3}}}
    choices = [
        Choice("main", "glyphs_tiny", 16, loss, trials, 2 * trials, 0.5, override if trials else {})
        for loss in ("smooth_ap", "smooth_ap_wide")
        for trials in (0, 1)
    ]
    selection, path = write_selected(study, choices, tmp_path / "results")
    assert read_choices(selection) == choices
    final = load_study(path)
    runs = expand(final)
    assert set(final.seeds) == {2, 3}
    assert final.references.trials == "small"
    chosen = runs["glyphs_tiny/tinynet~equal1/smooth_ap/bs16/seed2"].spec
    assert chosen.loss.params["tau"] == 0.3
    assert chosen.recipe.optimizer.lr == 0.5
    wide = runs["glyphs_tiny/tinynet~equal1/smooth_ap_wide/bs16/seed2"].spec
    assert wide.loss.params["tau"] == 0.1, "what the study itself sets is no option of the trials"
    published = runs["glyphs_tiny/tinynet~authors/smooth_ap/bs16/seed3"].spec
    assert published.recipe == study.trials.blocks[0].recipe
    block = {"trials.dataset": "glyphs_tiny", "trials.setting": "tinynet"}
    assert final_columns(chosen) == block | {"trials.budget": 1}
    assert final_columns(published) == block | {"trials.budget": 0}
    trial = expand(study)["glyphs_tiny.fold1/tinynet~trial02/roadmap/bs16/seed1"].spec
    assert trial_columns(trial) == block | {"trials.fold": 1, "trials.trial": 2}
    assert final_columns(trial) == {}
    wide = replace(trial, setting=Setting("tinynet", ("224",)))
    assert final_columns(wide) == {}


def test_the_final_study_has_its_own_recipes(ruled, tmp_path):
    recipes = ruled.parent / "recipes"
    (recipes / "tiny.yaml").rename(recipes / "base.yaml")
    (recipes / "tiny.yaml").write_text("extends: base\n")
    study = load_study(ruled)
    losses = ("smooth_ap", "smooth_ap_wide", "roadmap")
    choices = [Choice("main", "glyphs_tiny", 16, loss, 0, 0, 0.5, {}) for loss in losses]
    _, final = write_selected(study, choices, tmp_path / "results")
    copied = {path.name for path in (final.parent / "recipes").iterdir()}
    assert copied == {"base.yaml", "tiny.yaml"}
    assert load_study(final).blocks[0].recipe == study.trials.blocks[0].recipe


def test_the_workflow_knows_the_final_runs_once_they_are_chosen(ruled, tmp_path):
    flow = load_flow({"study": str(ruled), "results": str(tmp_path / "results")})
    assert flow.files("result.json") == []
    assert flow.later == 3 * 3 * 2
    drawn = {"optimizer": {"weight_decay": 0.1, "lr": 0.5}}  # not in the order of selection.json
    assert flow.imported == [flow.asked_in(flow.results)]
    losses = ("smooth_ap", "smooth_ap_wide", "roadmap")
    choices = [
        Choice("main", "glyphs_tiny", 16, loss, trials, trials, 0.5, drawn if trials else {})
        for loss in losses
        for trials in (0, 1, 2)
    ]
    fewer = [choice for choice in choices if choice.trials < 2]
    write_selected(flow.study, fewer, tmp_path / "results")
    assert flow.later == 3 * 3 * 2, "of another selection"
    write_selected(flow.study, choices, tmp_path / "results")
    assert len(flow.files("result.json")) == 3 * 3 * 2
    assert flow.later == 0
    assert flow.run("glyphs_tiny/tinynet~authors/roadmap/bs16/seed2").spec.seed == 2
    text = yaml.safe_load(flow.selected.read_text())
    assert text["study"] == "small-selected"
    assert flow.folder.endswith("results/small-selected")
