"""Each kind of problem has one clear message: what, where, what is allowed, the nearest name."""

from __future__ import annotations

import re
from dataclasses import make_dataclass, replace

import pytest
import yaml

from benchmark.core.errors import ConfigError
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
# What is changed of the small study and of its recipe, and the one problem that there is then.
WRONG = {
    "loss": ({"blocks.0.losses": [*LOSSES, "fastap"]}, "^blocks.0.losses.3 .*mean 'fast_ap'?"),
    "dataset": ({"blocks.0.datasets": ["glyph_tiny"]}, "^blocks.0.datasets.0 .*mean 'glyphs_tiny'"),
    "dataset for evaluation only": (
        {"blocks.0.datasets": ["roxford5k"], "metrics": ["map"]},
        "^blocks.0.datasets.0 .*'roxford5k' has no training images.*sfm120k",
    ),
    "packed copy under crops of the original images": (
        {
            "blocks.0.datasets": [{"name": "cub", "params": {"root": "cub", "packed": 256}}],
            "recipe.input": {"augmentation": "crop_flip", "train_resize": "none"},
        },
        "^blocks.0.datasets.0.params.packed .*256 would change the crops.*at least 500, or null",
    ),
    "packed copy of a dataset that states no size": (
        {
            "blocks.0.datasets": [{"name": "sop", "params": {"root": "sop", "packed": 4096}}],
            "recipe.input": {"augmentation": "crop_flip", "train_resize": "none"},
        },
        "^blocks.0.datasets.0.params.packed .*would change the crops.*give null",
    ),
    "parameter of a dataset": (
        {"blocks.0.datasets": [{"name": "glyphs_tiny", "params": {"colour": "red"}}]},
        "^blocks.0.datasets.0.params .*'colour'",
    ),
    "hyperparameter": ({f"{WIDE}.taw": 0.1}, f"^{WIDE}.taw .*did you mean 'tau'"),
    "hyperparameter's range": ({f"{WIDE}.tau": -1.0}, f"^{WIDE}.tau .*be greater than 0"),
    "loss of a variant": ({f"{WIDE}.loss": "smoothap"}, "did you mean 'smooth_ap'"),
    "variant with a registered name": (
        {"losses.roadmap": {"loss": "sup_ap"}},
        "a label of its own",
    ),
    "variant without a block": ({"losses.forgotten": {"loss": "sup_ap"}}, "no block uses it"),
    "batch size": ({"blocks.0.batch_sizes": [16, 30]}, "^blocks.0.batch_sizes .*30.*4"),
    "sampler": ({"recipe.sampler.name": "m_per_clas"}, "did you mean 'm_per_class'"),
    "key of a recipe": (
        {"recipe.optimizer.learning_rate": 0.1},
        r"tiny.yaml: optimizer.learning_rate \(line ",
    ),
    "value of a recipe": ({"recipe.training.epochs": -1}, "training.epochs .*than or equal to 0"),
    "K of recall twice": (
        {"recipe.evaluation.recall_at": [1, 1]},
        "tiny.yaml: evaluation.recall_at .*non-unique",
    ),
    "value without a source": (
        {"recipe.sources": dict.fromkeys(("model", "sampler.name", "evaluation"), "a paper")},
        "sampler.params.samples_per_class .*has no source",
    ),
    "source without a value": (
        {"recipe.sources": dict.fromkeys(("model", "sampler", "evaluation", "optimiser.lr"), "a")},
        "sources.optimiser.lr .*names no value of this recipe",
    ),
    "value of an option": (
        {"recipe.options.long.training.epochs": -1},
        "tiny.yaml: options.long.training.epochs ",
    ),
    "hyperparameter of a recipe": ({"recipe.losses.roadmap.rhoo": 1.0}, "losses.roadmap.*'rhoo'"),
    "hyperparameter of an option": (
        {"recipe.options.paper.losses.roadmap.rhoo": 1.0},
        "options.paper.losses.roadmap.*'rhoo'",
    ),
    "loss with a precision": (
        {"recipe.loss_precision": {"roadmapp": "float32"}},
        "loss_precision.*did you mean 'roadmap'",
    ),
    "precision": ({"recipe.loss_precision": {"roadmap": "float8"}}, "loss_precision.*float16"),
    **{
        f"resources {wrong}": ({"blocks.0.resources": wrong}, "^blocks.0.resources")
        for wrong in ({"gpu": 1}, {"gpus": -1}, [1], "many")
    },
    **{
        f"recipe {wrong}": ({"blocks.0.recipe": wrong}, "^blocks.0.recipe")
        for wrong in (["tiny"], 3, {"glyphs_tiny": 3}, {})
    },
    "metric of a block": ({"blocks.0.metrics": ["map"]}, "metric of this study 'map'"),
    **{
        f"milestones {wrong}": (
            {"recipe.schedule": {"name": "step", "milestones": wrong}},
            "tiny.yaml: schedule.milestones .*do not rise from 0",
        )
        for wrong in ([-1], [5, 3], [2, 2])
    },
    "recipe": ({"blocks.0.recipe": "tinyy"}, "'tinyy'; did you mean 'tiny'.*looked in"),
    "metric": ({"metrics": ["recall_at_1", "map_at_k"]}, "^metrics.1 .*unknown metric 'map_at_k'"),
    "metric, beside a block's own": (
        {"metrics": ["recall_at_1", "map_at_k"], "blocks.0.metrics": ["recall_at_1"]},
        "unknown metric 'map_at_k'",
    ),
    "metric of thousands of digits": (
        {"metrics": [f"recall_at_{'9' * 4400}"]},
        "^metrics.0 .*unknown metric 'recall_at_999",
    ),
    "recall not measured": ({"metrics": ["recall_at_4"]}, r"'recall_at_4' is not.*\[1, 10\]"),
    "K of recall": (
        {"blocks.0.option": "far", "blocks.0.override.evaluation.recall_at": [10**9]},
        "evaluation.recall_at.0 .*999999999",
    ),
    "baseline": (
        {"comparison.baseline": "fast_ap"},
        "^comparison.baseline .*known: roadmap, smooth_ap, smooth_ap_wide",
    ),
    "ablation": ({"comparison.ablation": ["smooth_ap", "sup_ap"]}, "^comparison.ablation.1"),
    "ablation with a loss twice": (
        {"comparison.ablation": ["roadmap", "smooth_ap", "roadmap"]},
        "^comparison.ablation .*non-unique",
    ),
    **{  # at 1e-16 the search for what a test can see did not end
        f"error rate {alpha}": ({"comparison.alpha": alpha}, "^comparison.alpha ")
        for alpha in (1e-16, 1e-4, 0.51, 0.9999999999999999)
    },
    "table": ({"tables": ["no_such_thing"]}, "unknown table 'no_such_thing'"),
    "figure": ({"figures": ["no_such_thing"]}, "unknown figure 'no_such_thing'"),
    "published table": ({"references.published": ["smoothap2021"]}, "did you mean 'smoothap2020'"),
    "key": ({"metric": ["map"]}, "^metric .*unknown key 'metric'; did you mean 'metrics'"),
    "name": ({"study": "large"}, "must equal the file name, 'small'"),
    "label": (
        {"blocks.0.datasets": [{"name": "glyphs_tiny", "label": "a/b"}]},
        r"String should match pattern '\^\[A-Za-z0-9\]",
    ),
    "block twice": ({"blocks.1": {**MAIN, "batch_sizes": [16]}}, "'main' is used twice"),
    "override": (
        {"blocks.0.option": "long", "blocks.0.override.training.epoch": 2},
        "^blocks.0.override.training.epoch .*did you mean 'epochs'",
    ),
    "override without an option": (
        {"blocks.0.override.training.epochs": 2},
        "^blocks.0.override .*needs an 'option'",
    ),
    "option without an override": (
        {"blocks.0.option": "lnog", "recipe.options.long.training.epochs": 3},
        "^blocks.0.option .*needs an 'override'.*options of recipe 'tiny': long",
    ),
    "number of runs": ({"seeds": list(range(60_000))}, "allowed: 100,000.*divide the study"),
    **{  # 'freeze' writes there
        f"frozen runs at {path}": ({"references.frozen": path}, "^references.frozen .*" + words)
        for words, paths in {
            "": ["/etc/passwd", "../frozen.csv", "a/../../b.csv"],
            "results/reference/small.csv": [".", "tests", "new/"],
        }.items()
        for path in paths
    },
    **{  # 'freeze' makes a folder of this name
        f"trials of {name}": ({"references.trials": name}, "^references.trials ")
        for name in ("../x", "/etc", "a/b")
    },
    **{
        f"field {field[:9]!r}": (
            {"references.field": field},
            "^references.field .*runs.csv is not there.*freeze STUDY --out FOLDER.*/reality_check",
        )
        for field in ("nowhere", "", "results", "n" * 300, "a\0b")
    },
    "loss without references": (
        XBM | {"blocks.0.losses": [*LOSSES, "proxy_nca"]},
        "^blocks.0.losses .*'proxy_nca' takes no references",
    ),
    "variant without references": (
        XBM | {"blocks.0.losses": [*LOSSES, "angle"], "losses.angle": ANGLE},
        "'pml' takes no references",
    ),
    "memory of nothing": (XBM | {"blocks.0.override.memory.size": 0}, "size .*0 remembers nothing"),
    "memory below -1": (XBM | {"blocks.0.override.memory.size": -2}, "equal to -1, not -2"),
    "memory too late": (
        XBM | {"blocks.0.override.memory.start_epoch": 1000},
        "override.memory.start_epoch .*1000 is not before the end of the training",
    ),
    "kind of memory": (
        XBM | {"blocks.0.override.memory.key": "class"},
        "override.memory.key .*unknown key 'class'; known: fifo, image",
    ),
    "query expansion": (
        {
            "blocks.0.option": "expanded",
            "blocks.0.override.evaluation.query_expansion": {"alpha": 2.0, "k": 0},
        },
        "override.evaluation.query_expansion.k .*greater than or equal to 1",
    ),
    "whitening": (
        {
            "recipe.model.embedding_dim": 32,
            "blocks.0.option": "white",
            "blocks.0.override.evaluation.whitening": 33,
        },
        "override.evaluation.whitening .*33 dimensions are more than the 32 of model.embedding_dim",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_problem_is_one_message_with_its_place(case, change, problems_of):
    changes, pattern = WRONG[case]
    (problem,) = problems_of(change(changes))
    assert re.search(pattern, problem, re.DOTALL), problem


@pytest.mark.parametrize(("side", "resize"), [(500, "none"), (256, "short_side")])
def test_a_packed_copy_that_changes_no_crop_is_allowed(side, resize, change, write_study):
    data = {"name": "cub", "params": {"root": "cub", "packed": side}}
    given = {"augmentation": "crop_flip", "train_resize": resize}
    load_study(write_study(change({"blocks.0.datasets": [data], "recipe.input": given})))


def test_a_wrong_sampler_parameter_is_named(change, problems_of):
    problems = problems_of(change({"recipe.sampler.params": {"samples_per_clas": 4}}))
    assert all("samples_per_clas" in problem for problem in problems)


def test_metric_that_the_dataset_cannot_give(study_data, problems_of, monkeypatch):
    monkeypatch.setattr(DATASETS["glyphs_tiny"].target, "metrics", ("map_at_r",))
    words = "dataset 'glyphs_tiny' cannot give 'recall_at_1'; it gives: map_at_r"
    assert words in problems_of(study_data)[0]


def test_missing_key(study_data, problems_of):
    del study_data["title"]
    (problem,) = problems_of(study_data)
    assert problem.startswith("title (line 1)  Field required")


def test_empty_and_repeated_lists(change, problems_of):
    changes = {"seeds": [0, 0], "references.published": ["glyphs2030"] * 2}
    problems = problems_of(change(changes | {"blocks.0.batch_sizes": []}))
    for key in ("seeds", "references.published"):
        assert any(line.startswith(f"{key} (line") and "non-unique" in line for line in problems)
    assert any(line.startswith("blocks.0.batch_sizes (line") for line in problems)


def test_one_dataset_label_twice_in_a_block(change, problems_of):
    twice = ["glyphs_tiny", {"name": "glyphs_1k", "label": "glyphs_tiny"}]
    problems = problems_of(change({"blocks.0.datasets": twice}))
    assert any("label 'glyphs_tiny' is used twice" in line for line in problems)


def test_two_blocks_asking_for_one_run_with_different_contents(
    change, problems_of, tmp_path, recipe_data
):
    (tmp_path / "recipes").mkdir()
    other = {**recipe_data, "training": {"epochs": 2}}
    (tmp_path / "recipes" / "other.yaml").write_text(yaml.safe_dump(other))
    more = {"name": "more", "recipe": "other", "losses": ["roadmap"], "batch_sizes": [16]}
    (message,) = problems_of(change({"blocks.1": MAIN | more}))
    assert (
        "'main' and 'more' ask for the same run with different contents (recipe.training)"
        in message
    )
    assert "first: glyphs_tiny/tinynet/roadmap/bs16/seed0" in message


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
    (message,) = problems_of(write_study(study_data).read_text() + "title: again\n")
    assert "title (line " in message and "given twice" in message


def test_all_problems_of_fields_come_at_once_and_then_all_across_fields(change, problems_of):
    across = {
        "metrics": ["map_at_k"],
        f"{WIDE}.tau": 0,
        "comparison.baseline": "none",
        "blocks.0.losses": [*LOSSES, "fastap"],
        "blocks.0.datasets": ["glyphs_tiny", "glyph"],
    }
    fields = {"metric": [], "seeds": [-1], "blocks.0.batch_sizes": [16, 32, 1]}
    places = [line.split(" ")[0] for line in problems_of(change(across | fields))]
    assert places == ["seeds.0", "blocks.0.batch_sizes.2", "metric"]
    study = change({"seeds": [0], "blocks.0.batch_sizes": [16]})
    del study["metric"]
    problems = "\n".join(problems_of(study))
    for part in ("map_at_k", "tau", "comparison.baseline", "fastap", "'glyph'"):
        assert part in problems, part


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
    assert {*study, "blocks.0", "blocks.1.datasets", "blocks.1.losses"} - {"blocks"} <= places


@pytest.mark.parametrize("name", ["tests/f.csv", "f~.csv", "new/f.csv"])
def test_frozen_runs_are_a_file_that_has_a_name(name, change, write_study):
    study = change({"references.frozen": name})
    assert load_study(write_study(study)).references.frozen == name


def test_the_field_of_a_study_with_rules_holds_trials_too(change, problems_of, tmp_path):
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "runs.csv").touch()
    study = change({"references.field": str(tmp_path), "rules.trials": [1]})
    assert str(tmp_path / "trials" / "runs.csv") in "\n".join(problems_of(study))


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
    (problem,) = problems_of(change({}))
    assert problem.startswith("blocks.0.losses (line ")
    assert f"'roadmap' needs the option '{KEY}', which has no default" in problem
    own = {"losses.own": {"loss": "roadmap", KEY: 1.0}, "comparison.ablation": []}
    path = write_study(change(own | {"blocks.0.losses": [*LOSSES[:2], "own"]}))
    assert load_study(path).blocks[0].losses[2].params == {KEY: 1.0}
    study = change({"recipe.losses.roadmap": {KEY: 1.0}, "blocks.0.losses": LOSSES, "losses": {}})
    study["blocks"][0]["losses"] = ["smooth_ap", "roadmap"]
    assert load_study(write_study(study)).blocks[0].losses[1].params == {KEY: 1.0}


@pytest.mark.parametrize("text", ["study: small\nblocks: [\n", "- a\n- b\n"])
def test_a_file_that_is_no_mapping_says_so_with_its_line(text, problems_of):
    (problem,) = problems_of(text)
    assert re.search(r"is not valid YAML: .* in line 3|must be a mapping", problem)


@pytest.mark.parametrize("name", ["runs", "Runs", "cache", "mlartifacts", "mlflow.db", "reference"])
def test_a_study_cannot_be_called_like_something_else_in_the_results(name, study_data, write_study):
    path = write_study({**study_data, "study": name}, name)
    with pytest.raises(ConfigError, match=f"'{name}' is the name of something else"):
        load_study(path)
