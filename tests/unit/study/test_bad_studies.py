"""Each kind of problem has one clear message: what, where, what is allowed, the nearest name."""

from __future__ import annotations

from dataclasses import make_dataclass, replace

import pytest
import yaml

from benchmark.core.options import option
from benchmark.datasets import DATASETS
from benchmark.losses.catalogue import load_catalogue
from benchmark.study import load, load_study
from benchmark.study.grid import conflicts, different_parts

LOSSES = ["smooth_ap", "smooth_ap_wide", "roadmap"]
MAIN = {"name": "main", "datasets": ["glyphs_tiny"], "recipe": "tiny", "losses": LOSSES}
WIDE = "losses.smooth_ap_wide"
XBM = {"blocks.0.option": "xbm", "blocks.0.override.memory.size": -1}
ANGLE = {"loss": "pml", "class": "ArcFaceLoss"}
RESOURCES = (
    ({"gpu": 1}, "value_error"),
    ({"gpus": -1}, "value_error"),
    ([1], "dict_type"),
    ("many", "dict_type"),
)
# What is changed of the small study and of its recipe, and the one problem that there is then.
WRONG = {
    "loss": ({"blocks.0.losses": [*LOSSES, "fastap"]}, "blocks.0.losses.3", "unknown_name"),
    "dataset": ({"blocks.0.datasets": ["glyph_tiny"]}, "blocks.0.datasets.0", "unknown_name"),
    "dataset for evaluation only": (
        {"blocks.0.datasets": ["roxford5k"], "metrics": ["map"]},
        "blocks.0.datasets.0",
        "not_trained_on",
    ),
    "packed copy under crops of the original images": (
        {
            "blocks.0.datasets": [{"name": "cub", "params": {"root": "cub", "packed": 256}}],
            "recipe.input": {"augmentation": "crop_flip", "train_resize": "none"},
        },
        "blocks.0.datasets.0.params.packed",
        "too_small",
    ),
    "packed copy of a dataset that states no size": (
        {
            "blocks.0.datasets": [{"name": "sop", "params": {"root": "sop", "packed": 4096}}],
            "recipe.input": {"augmentation": "crop_flip", "train_resize": "none"},
        },
        "blocks.0.datasets.0.params.packed",
        "too_small",
    ),
    "parameter of a dataset": (
        {"blocks.0.datasets": [{"name": "glyphs_tiny", "params": {"colour": "red"}}]},
        "blocks.0.datasets.0.params",
        "unknown_name",
    ),
    "hyperparameter": ({f"{WIDE}.taw": 0.1}, "losses.smooth_ap_wide.taw", "unknown_name"),
    "hyperparameter's range": ({f"{WIDE}.tau": -1.0}, "losses.smooth_ap_wide.tau", "greater_than"),
    "loss of a variant": (
        {f"{WIDE}.loss": "smoothap"},
        "losses.smooth_ap_wide.loss",
        "unknown_name",
    ),
    "variant with a registered name": (
        {"losses.roadmap": {"loss": "sup_ap"}},
        "losses.roadmap",
        "taken",
    ),
    "variant without a block": (
        {"losses.forgotten": {"loss": "sup_ap"}},
        "losses.forgotten",
        "unused",
    ),
    "batch size": ({"blocks.0.batch_sizes": [16, 30]}, "blocks.0.batch_sizes", "wrong_batch_size"),
    "sampler": ({"recipe.sampler.name": "m_per_clas"}, "blocks.0.recipe", "unknown_name"),
    "key of a recipe": (
        {"recipe.optimizer.learning_rate": 0.1},
        "blocks.0.recipe",
        "unknown_name",
    ),
    "value of a recipe": ({"recipe.training.epochs": -1}, "blocks.0.recipe", "greater_than_equal"),
    "K of recall twice": (
        {"recipe.evaluation.recall_at": [1, 1]},
        "blocks.0.recipe",
        "value_error",
    ),
    "value without a source": (
        {"recipe.sources": dict.fromkeys(("model", "sampler.name", "evaluation"), "a paper")},
        "blocks.0.recipe",
        "no_source",
    ),
    "source without a value": (
        {"recipe.sources": dict.fromkeys(("model", "sampler", "evaluation", "optimiser.lr"), "a")},
        "blocks.0.recipe",
        "no_value",
    ),
    "value of an option": (
        {"recipe.options.long.training.epochs": -1},
        "blocks.0.recipe",
        "greater_than_equal",
    ),
    "hyperparameter of a recipe": (
        {"recipe.losses.roadmap.rhoo": 1.0},
        "blocks.0.recipe",
        "unknown_name",
    ),
    "hyperparameter of an option": (
        {"recipe.options.paper.losses.roadmap.rhoo": 1.0},
        "blocks.0.recipe",
        "unknown_name",
    ),
    "loss with a precision": (
        {"recipe.loss_precision": {"roadmapp": "float32"}},
        "blocks.0.recipe",
        "unknown_name",
    ),
    "precision": (
        {"recipe.loss_precision": {"roadmap": "float8"}},
        "blocks.0.recipe",
        "unknown_name",
    ),
    **{
        f"resources {wrong}": ({"blocks.0.resources": wrong}, "blocks.0.resources", code)
        for wrong, code in RESOURCES
    },
    **{
        f"recipe {wrong}": ({"blocks.0.recipe": wrong}, "blocks.0.recipe", "string_type")
        for wrong in (["tiny"], 3, {})
    },
    "recipe of a dataset": (
        {"blocks.0.recipe": {"glyphs_tiny": 3}},
        "blocks.0.recipe.glyphs_tiny",
        "string_type",
    ),
    "metric of a block": ({"blocks.0.metrics": ["map"]}, "blocks.0.metrics.0", "unknown_name"),
    **{
        f"milestones {wrong}": (
            {"recipe.schedule": {"name": "step", "milestones": wrong}},
            "blocks.0.recipe",
            "",
        )
        for wrong in ([-1], [5, 3])
    },
    "recipe": ({"blocks.0.recipe": "tinyy"}, "blocks.0.recipe", "unknown_name"),
    "metric": ({"metrics": ["recall_at_1", "map_at_k"]}, "metrics.1", "unknown_name"),
    "metric, beside a block's own": (
        {"metrics": ["recall_at_1", "map_at_k"], "blocks.0.metrics": ["recall_at_1"]},
        "metrics.1",
        "unknown_name",
    ),
    "metric of thousands of digits": (
        {"metrics": [f"recall_at_{'9' * 4400}"]},
        "metrics.0",
        "unknown_name",
    ),
    "recall not measured": ({"metrics": ["recall_at_4"]}, "metrics.0", "not_measured"),
    "K of recall": (
        {"blocks.0.option": "far", "blocks.0.override.evaluation.recall_at": [10**9]},
        "blocks.0.override.evaluation.recall_at.0",
        "less_than_equal",
    ),
    "baseline": (
        {"comparison.baseline": "fast_ap"},
        "comparison.baseline",
        "unknown_name",
    ),
    "ablation": (
        {"comparison.ablation": ["smooth_ap", "sup_ap"]},
        "comparison.ablation.1",
        "unknown_name",
    ),
    "ablation with a loss twice": (
        {"comparison.ablation": ["roadmap", "smooth_ap", "roadmap"]},
        "comparison.ablation",
        "value_error",
    ),
    **{  # at 1e-16 the search for what a test can see did not end
        f"error rate {alpha}": ({"comparison.alpha": alpha}, "comparison.alpha", code)
        for alpha, code in (
            (1e-16, "greater_than_equal"),
            (1e-4, "greater_than_equal"),
            (0.51, "less_than_equal"),
            (0.9999999999999999, "less_than_equal"),
        )
    },
    "table": ({"tables": ["no_such_thing"]}, "tables.0", "unknown_name"),
    "figure": ({"figures": ["no_such_thing"]}, "figures.0", "unknown_name"),
    "published table": (
        {"references.published": ["smoothap2021"]},
        "references.published.0",
        "unknown_name",
    ),
    "key": ({"metric": ["map"]}, "metric", "unknown_name"),
    "name": ({"study": "large"}, "study", "other_name"),
    "label": (
        {"blocks.0.datasets": [{"name": "glyphs_tiny", "label": "a/b"}]},
        "blocks.0.datasets.0.label",
        "string_pattern_mismatch",
    ),
    "block twice": ({"blocks.1": {**MAIN, "batch_sizes": [16]}}, "blocks.1.name", "used_twice"),
    "override": (
        {"blocks.0.option": "long", "blocks.0.override.training.epoch": 2},
        "blocks.0.override.training.epoch",
        "unknown_name",
    ),
    "override without an option": (
        {"blocks.0.override.training.epochs": 2},
        "blocks.0.override",
        "no_option",
    ),
    "option without an override": (
        {"blocks.0.option": "lnog", "recipe.options.long.training.epochs": 3},
        "blocks.0.option",
        "no_override",
    ),
    "number of runs": ({"seeds": list(range(60_000))}, "blocks", "too_many"),
    **{  # 'freeze' writes there
        f"frozen runs at {path}": ({"references.frozen": path}, "references.frozen", "wrong_path")
        for path in ("/etc/passwd", "../frozen.csv", "a/../../b.csv", ".", "tests", "new/")
    },
    **{  # 'freeze' makes a folder of this name
        f"trials of {name}": (
            {"references.trials": name},
            "references.trials",
            "string_pattern_mismatch",
        )
        for name in ("../x", "/etc", "a/b")
    },
    **{
        f"field {field[:9]!r}": (
            {"references.field": field},
            "references.field",
            "missing_file",
        )
        for field in ("nowhere", "", "results", "n" * 300, "a\0b")
    },
    "loss without references": (
        XBM | {"blocks.0.losses": [*LOSSES, "proxy_nca"]},
        "blocks.0.losses",
        "no_references",
    ),
    "variant without references": (
        XBM | {"blocks.0.losses": [*LOSSES, "angle"], "losses.angle": ANGLE},
        "blocks.0.losses",
        "no_references",
    ),
    "memory of nothing": (
        XBM | {"blocks.0.override.memory.size": 0},
        "blocks.0.override.memory.size",
        "",
    ),
    "memory below -1": (
        XBM | {"blocks.0.override.memory.size": -2},
        "blocks.0.override.memory.size",
        "greater_than_equal",
    ),
    "memory too late": (
        XBM | {"blocks.0.override.memory.start_epoch": 1000},
        "blocks.0.override.memory.start_epoch",
        "",
    ),
    "kind of memory": (
        XBM | {"blocks.0.override.memory.key": "class"},
        "blocks.0.override.memory.key",
        "unknown_name",
    ),
    "query expansion": (
        {
            "blocks.0.option": "expanded",
            "blocks.0.override.evaluation.query_expansion": {"alpha": 2.0, "k": 0},
        },
        "blocks.0.override.evaluation.query_expansion.k",
        "greater_than_equal",
    ),
    "whitening": (
        {
            "recipe.model.embedding_dim": 32,
            "blocks.0.option": "white",
            "blocks.0.override.evaluation.whitening": 33,
        },
        "blocks.0.override.evaluation.whitening",
        "",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_problem_is_one_message_with_its_place(case, change, problems_of):
    changes, key, code = WRONG[case]
    assert problems_of(change(changes)) == [(code, key)]


@pytest.mark.parametrize(("side", "resize"), [(500, "none"), (256, "short_side")])
def test_a_packed_copy_that_changes_no_crop_is_allowed(side, resize, change, write_study):
    data = {"name": "cub", "params": {"root": "cub", "packed": side}}
    given = {"augmentation": "crop_flip", "train_resize": resize}
    load_study(write_study(change({"blocks.0.datasets": [data], "recipe.input": given})))


def test_a_wrong_sampler_parameter_is_named(change, problems_of):
    problems = problems_of(change({"recipe.sampler.params": {"samples_per_clas": 4}}))
    assert problems == [("unknown_name", "blocks.0.batch_sizes")]


def test_metric_that_the_dataset_cannot_give(study_data, problems_of, monkeypatch):
    monkeypatch.setattr(DATASETS["glyphs_tiny"].target, "metrics", ("map_at_r",))
    assert problems_of(study_data) == [("not_given", "metrics.0")]


def test_missing_key(study_data, problems_of):
    del study_data["title"]
    assert problems_of(study_data) == [("missing", "title")]


def test_empty_and_repeated_lists(change, problems_of):
    changes = {"seeds": [0, 0], "references.published": ["glyphs2030"] * 2}
    problems = problems_of(change(changes | {"blocks.0.batch_sizes": []}))
    assert problems == [
        ("value_error", "seeds"),
        ("too_short", "blocks.0.batch_sizes"),
        ("value_error", "references.published"),
    ]


def test_one_dataset_label_twice_in_a_block(change, problems_of):
    twice = ["glyphs_tiny", {"name": "glyphs_1k", "label": "glyphs_tiny"}]
    assert problems_of(change({"blocks.0.datasets": twice})) == [
        ("used_twice", "blocks.0.datasets.1")
    ]


@pytest.mark.parametrize(
    ("changes", "key", "code"),
    [
        ({"blocks.0.recipe": {"glyphs_1k": "tiny"}}, "blocks.0.recipe", "missing"),
        ({"blocks.0.option": "square"}, "blocks.0.option", "no_override"),
        ({"blocks.0.noise_square": 3}, "blocks.0.noise_square", "no_option"),
        (
            {"blocks.0.noise_square": 3, "blocks.0.option": "square", "blocks.0.seeds": [1]},
            "blocks.0.noise_square",
            "has_seeds",
        ),
        (
            {"blocks.0.batch_sizes": ["all"], "blocks.0.datasets": ["glyphs_tiny", "glyphs_1k"]},
            "blocks.0.batch_sizes.0",
            "unknown_size",
        ),
        ({"looks": [2], "rules": {"trials": [1]}}, "looks", "has_rules"),
        ({"looks": [3]}, "looks", "wrong_looks"),
    ],
)
def test_fields_that_do_not_go_together_are_named(changes, key, code, change, problems_of):
    assert (code, key) in problems_of(change(changes))


def test_two_blocks_asking_for_one_run_with_different_contents(
    change, problems_of, tmp_path, recipe_data
):
    (tmp_path / "recipes").mkdir()
    other = {**recipe_data, "training": {"epochs": 2}}
    (tmp_path / "recipes" / "other.yaml").write_text(yaml.safe_dump(other))
    more = {"name": "more", "recipe": "other", "losses": ["roadmap"], "batch_sizes": [16]}
    assert problems_of(change({"blocks.1": MAIN | more})) == [("conflict", "blocks")]


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


def test_key_given_twice(study_data, problems_of, write_study):
    text = write_study(study_data).read_text() + "title: again\n"
    assert problems_of(text) == [("given_twice", "title")]


def test_all_problems_of_fields_come_at_once_and_then_all_across_fields(change, problems_of):
    across = {
        "metrics": ["map_at_k"],
        f"{WIDE}.tau": 0,
        "comparison.baseline": "none",
        "blocks.0.losses": [*LOSSES, "fastap"],
        "blocks.0.datasets": ["glyphs_tiny", "glyph"],
    }
    fields = {"metric": [], "seeds": [-1], "blocks.0.batch_sizes": [16, 32, 1]}
    places = [key for _, key in problems_of(change(across | fields))]
    assert places == ["seeds.0", "blocks.0.batch_sizes.2", "metric"]
    study = change({"seeds": [0], "blocks.0.batch_sizes": [16]})
    del study["metric"]
    assert set(problems_of(study)) == {
        ("unknown_name", "metrics.0"),
        ("greater_than", f"{WIDE}.tau"),
        ("unknown_name", "comparison.baseline"),
        ("unknown_name", "blocks.0.losses.3"),
        ("unknown_name", "blocks.0.datasets.1"),
    }


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
    places = {key for _, key in problems_of(study)}
    assert {*study, "blocks.0", "blocks.1.datasets", "blocks.1.losses"} - {"blocks"} <= places


@pytest.mark.parametrize("name", ["tests/f.csv", "f~.csv", "new/f.csv"])
def test_frozen_runs_are_a_file_that_has_a_name(name, change, write_study):
    study = change({"references.frozen": name})
    assert load_study(write_study(study)).references.frozen == name


def test_tables_without_a_manifest_are_no_field(change, problems_of, tmp_path):
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "runs.csv").touch()
    study = change({"references.field": str(tmp_path), "rules.trials": [1]})
    assert ("missing_file", "references.field") in problems_of(study)


def test_losses_and_library_classes_with_references_take_a_memory(change, write_study):
    pairs = {"loss": "pml", "class": "ContrastiveLoss"}
    sizes = {"blocks.0.override.memory": {"size": 60000, "key": "fifo"}}
    changes = {"losses.pairs": pairs, "blocks.0.losses": [*LOSSES, "pairs"]}
    study = load_study(write_study(change(XBM | sizes | changes)))
    assert study.blocks[0].recipe.memory.size == 60000


@pytest.mark.parametrize(("head", "kept"), [(32, 32), (None, 4096)])
def test_whitening_within_the_head_or_of_a_network_without_one(head, kept, change, write_study):
    recipe = {"recipe.model.embedding_dim": head, "blocks.0.option": "white"}
    study = change(recipe | {"blocks.0.override.evaluation.whitening": kept})
    assert load_study(write_study(study)).blocks[0].recipe.evaluation.whitening == kept


KEY = "lambda_val"


@pytest.fixture
def without_default(monkeypatch):
    """Take the default of an option of ROADMAP away."""
    plain = load_catalogue()
    config = make_dataclass("Config", [(KEY, float, option())])
    changed = {**plain, "roadmap": replace(plain["roadmap"], config=config)}
    monkeypatch.setattr(load, "load_catalogue", lambda: changed)


@pytest.mark.usefixtures("without_default")
def test_an_option_without_a_default_is_given_by_study_or_recipe(change, problems_of, write_study):
    assert problems_of(change({})) == [("missing", "blocks.0.losses")]
    own = {"losses.own": {"loss": "roadmap", KEY: 1.0}, "comparison.ablation": []}
    path = write_study(change(own | {"blocks.0.losses": [*LOSSES[:2], "own"]}))
    assert load_study(path).blocks[0].losses[2].params == {KEY: 1.0}
    study = change({"recipe.losses.roadmap": {KEY: 1.0}, "blocks.0.losses": LOSSES, "losses": {}})
    study["blocks"][0]["losses"] = ["smooth_ap", "roadmap"]
    assert load_study(write_study(study)).blocks[0].losses[1].params == {KEY: 1.0}


@pytest.mark.parametrize(
    ("text", "code"), [("study: small\nblocks: [\n", "invalid_yaml"), ("- a\n- b\n", "dict_type")]
)
def test_a_file_that_is_no_mapping_says_so_with_its_line(text, code, problems_of):
    assert problems_of(text) == [(code, "")]


@pytest.mark.parametrize("name", ["runs", "Runs", "cache", "mlartifacts", "mlflow.db", "reference"])
def test_a_study_cannot_be_called_like_something_else_in_the_results(name, study_data, problems_of):
    assert problems_of({**study_data, "study": name}, name) == [("reserved_name", "study")]
