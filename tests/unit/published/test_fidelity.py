"""The ledger of recipes beside the papers and their authors' code."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from paper_folders import load_paper, refused_by, write_paper

from benchmark.core.errors import ReferenceDataError
from benchmark.published.fidelity import (
    Row,
    as_text,
    assumed,
    large_effects,
    ledger,
    rows_of_run,
    study_ledger,
)
from benchmark.published.loading import PaperError, load_papers
from benchmark.published.paper import shared_facts
from benchmark.published.schema import Fact, Paper, as_yaml
from benchmark.study import load_study
from benchmark.verdicts.matching import StudyGrid

PAPER_STUDIES = ("fast_ap", "listwise", "roadmap", "smooth_ap")
CROPS = "train_augmentation train_crop"
# What the values of recipes are called in hyperparameters.csv; * for any row of the section.
CALLED = {
    "dataset model.backbone": "*",
    "model.pretrained model.checkpoint": "pretraining",
    "model.freeze_backbone training.staged": "trained_layers",
    "model.pooling": "pooling",
    "model.layer_norm": "layer_normalisation",
    "model.embedding_dim": "embedding_dim",
    "input.image_size": f"image_size crop_size test_crop train_crop_resized_to {CROPS}",
    "input.resize input.train_resize input.keep_aspect": "image_resize test_resize image_size",
    "input.native_size input.max_side": "test_image_size",
    "input.crop_aspect": "train_crop_aspect_ratio",
    "input.flip": f"horizontal_flip_probability {CROPS}",
    "input.augmentation input.crop input.crop_area input.crop_aspect input.rotation": CROPS,
    "input.brightness input.contrast input.saturation input.hue": CROPS,
    "optimizer.name": "optimizer",
    "optimizer.lr optimizer.layer_decay": "learning_rate",
    "optimizer.weight_decay": "weight_decay",
    "optimizer.head_lr_multiplier": "last_layer_lr_multiplier",
    "schedule.*": "lr_schedule",
    "sampler.name": "*sampling hard_negative_mining triplet_hard_negative_mining",
    "sampler.params.samples_per_class": "*samples_per_class sampling",
    "sampler.params.batches_per_pair": "minibatches_per_category_pair *sampling",
    "sampler.params.nb_categories": "categories_per_minibatch sampling",
    "sampler.params.classes": "sampling",
    "training.epochs epoch_of_the_numbers": "epochs n_iterations triplet_updates",
    "training.precision loss_precision.*": "mixed_precision",
    "training.micro_batch training.staged": "batch_size large_batch_training",
    "optimizer.lr optimizer.weight_decay schedule.name": "triplet_hyperparameters",
    "losses.triplet_mined.* sampler.params.*": "triplet_hyperparameters",
    "memory.size": "xbm_memory_size",
    "losses.*.delta": "delta_formula",
    "losses.*.weights losses.*.lambda_": "lambda",
    "losses.*.tau": "tau",
    "losses.*.rho": "rho",
    "losses.*.alpha": "alpha",
    "losses.*.beta": "beta",
    "losses.*.bins": "bins fastap_bins",
    "losses.*.lowest": "bin_width",
    "losses.blackbox_ap.lambda_val": "blackbox_lambda",
    "losses.blackbox_ap.margin": "blackbox_margin",
    "losses.*.query_weights": "class_weighting",
    "evaluation.query_expansion": "aqe_alpha aqe_k",
    "evaluation.whitening*": "whitening test_code",
    "evaluation.scales": "test_scales test_crop",
    "batch_size": "*batch_size",
    "batches_of_an_epoch": "minibatches_per_epoch",
    "mean_of_frames": "video_descriptor",
    "losses.*.offset losses.*.start": "h_minus",
    "losses.*.reduction": "calibration_mean",
    "losses.*.include_query": "queries queries_of_a_batch retrieval_set_in_training",
    "losses.*.ties": "loss",
    "losses.*.mining": "triplet_mining",
}


def fact(item, code="", effect="none", recipe="made_up", paper="", reason=""):
    return Fact(recipe, item, paper, "", code, "", effect, reason)


def contradictions(rows: list[Row]) -> list[str]:
    """Return what the effects of rows say against their values."""
    return [
        f"{row.recipe}: {row.item} is {row.ours}, authors {row.code or row.paper}: equal "
        f"'{row.equal}' does not go with the effect '{row.effect}'"
        for row in rows
        if (row.equal == "yes") == row.deviates and row.equal != "not stated"
    ]


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_every_value_of_a_papers_recipes_has_a_row_that_agrees_with_its_effect(name):
    rows = study_ledger(load_study(name))
    assert rows
    assert contradictions(rows) == []
    assert all(row.reason for row in rows if row.deviates)


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_what_nobody_states_may_act_unless_it_has_no_effect(name):
    rows = study_ledger(load_study(name))
    unstated = [row for row in rows if row.equal == "not stated"]
    assert [f"{row.recipe} {row.item}" for row in unstated if row.effect == "none"] == []
    assert [row.item for row in rows if row.effect == "no effect" and row not in unstated] == []


def untied(fact: Fact, printed: list[dict[str, str]]) -> list[str]:
    """Return the items of a fact whose section states no such hyperparameter of its datasets."""
    section = fact.stated_in.replace(" ", "")
    rows = [row for row in printed if section in sections_of(row)]
    found = []
    for item in fact.item.split():
        plain = re.sub(r"^options\.\w+\.", "", item)
        names = [name for items, name in CALLED.items() if matches(plain, items)]
        scopes = {row["scope"] for row in rows if matches(row["name"], " ".join(names))}
        recipes = fact.recipe.split()
        # an option is of one dataset; SoftBinAP names others than it is trained on
        if item != plain or fact.recipe.startswith("listwise"):
            recipes = []
        is_stated = all(scopes & {*recipe.split("_"), "all"} for recipe in recipes)
        if not scopes or not is_stated:
            found.append(f"line {fact.line}: {fact.recipe} {item}, section {fact.stated_in}")
    return found


def sections_of(row: dict[str, str]) -> list[str]:
    """Return the sections of "2.1; 3 (table 2)"."""
    places, *_ = row["source"].replace(" ", "").split("(")
    return places.split(";")


def matches(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns.split())


def hyperparameters(paper: Paper) -> list[dict[str, str]]:
    """Return the rows of hyperparameters.csv that are of the version which counts."""
    with open(paper.folder / "hyperparameters.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [row for row in rows if row.get("version", "") in ("", paper.source[-2:])]


@pytest.mark.parametrize("paper", load_papers().values(), ids=load_papers())
def test_what_a_ledger_says_of_a_paper_is_among_its_hyperparameters(paper):
    printed = hyperparameters(paper)
    stated = [fact for fact in paper.facts if fact.paper]
    assert [line for fact in stated for line in untied(fact, printed)] == []
    moved = [replace(fact, stated_in="9.9") for fact in stated]
    assert all(untied(fact, printed) for fact in moved)


PAPERS_OF = dict(zip(PAPER_STUDIES, sorted(load_papers()), strict=True))
# Values that a name of CALLED covers beside others, but of which the papers speak nowhere.
NOT_MEANT = {
    "model.checkpoint": "pretraining is said of model.pretrained",
    "optimizer.layer_decay": "a rate is stated, rates of layers are not",
    "schedule.warmup_epochs": "when the rate falls is stated, how it begins is not",
    "epoch_of_the_numbers": "how long is stated, which epoch was reported is not",
}


def unfilled(rows: list[Row], printed: list[dict[str, str]]) -> list[str]:
    """Return the values whose paper cell is empty though hyperparameters.csv states them."""
    filled = set()
    for row in rows:
        if row.paper:
            filled.add((row.recipe, re.sub(r"^options\.\w+\.", "", row.item)))
    found = []
    for row in rows:
        parts = {*row.recipe.split("_"), "all"}
        if "listwise" in parts:
            parts |= {"landmarks", "roxford", "rparis"}
        idle = row.effect == "no effect" or row.item in NOT_MEANT or "inshop" in row.recipe
        if idle or (row.recipe, row.item) in filled or row.item.startswith("options."):
            continue
        names = " ".join(name for items, name in CALLED.items() if matches(row.item, items))
        for named in printed:
            fits = named["scope"] in parts and named["backbone"] in ("", *parts)
            of_triplets = named["name"].startswith("triplet_") and "triplets" not in parts
            if fits and not of_triplets and names != "*" and matches(named["name"], names):
                found.append(f"{row.recipe}: {row.item}, {named['source']}")
    return found


@pytest.mark.parametrize("study", PAPER_STUDIES)
def test_a_cell_of_the_paper_is_empty_only_where_the_paper_says_nothing(study):
    printed = hyperparameters(load_papers()[PAPERS_OF[study]])
    rows = study_ledger(load_study(study))
    assert unfilled(rows, printed) == []
    emptied = [row._replace(paper="") for row in rows]
    assert len(unfilled(emptied, printed)) > 30


READ = yaml.safe_load(Path(__file__).with_name("places_read.yaml").read_text())


def places_of(text: str) -> set[str]:
    """Return the sections of "section 4.1 and B.4, tables 3 and 6", and of "table6 caption"."""
    text = re.sub(r"\(.*?\)|caption|sections?|,? ?(tables?|figures?) [\dS].*", "", text)
    parts = re.split(r"[;,]| and ", text)
    return {re.sub(r"^table (\d)", r"table\1", part.strip()) for part in parts} - {""}


@pytest.mark.parametrize("paper", load_papers().values(), ids=load_papers())
def test_the_places_that_state_values_are_those_that_were_read(paper):
    read = READ[paper.key]
    states = set(read["states"])
    silent = set(read["silent"])
    assert not states & silent
    printed = {place for row in hyperparameters(paper) for place in places_of(row["source"])}
    assert printed == states
    cited = {place for claim in paper.claims.values() for place in places_of(claim.stated_in)}
    assert cited <= states | silent
    assert {place for fact in paper.facts for place in places_of(fact.stated_in)} <= states


@pytest.mark.parametrize("study", PAPER_STUDIES)
def test_what_an_equation_decides_has_a_cell_of_the_paper(study):
    equations = READ[PAPERS_OF[study]]["equations"]
    assert list(equations) == list(range(1, len(equations) + 1))
    rows = [row for row in study_ledger(load_study(study)) if not row.item.startswith("options.")]
    for number, items in equations.items():
        decided = [row for row in rows if matches(row.item, items)]
        assert bool(decided) == bool(items), number
        # rivals have equations of their own, in papers of theirs
        named = {"smooth_ap": "smooth_ap", "roadmap": "sup_ap roadmap calibration"}.get(study, "*")
        own = [row for row in decided if matches(row.item.split(".")[1], named)]
        assert [f"{row.recipe} {row.item}" for row in own if not row.paper] == [], number


@pytest.mark.parametrize("study", PAPER_STUDIES)
def test_where_code_and_text_part_a_number_or_a_test_says_by_how_much(study):
    apart = [row for row in study_ledger(load_study(study)) if row.against]
    for row in apart:
        paths = re.findall(r"tests/[\w/.]+\.py", row.reason)
        assert paths or re.search(r"\d", row.reason), f"{row.recipe} {row.item}: {row.reason}"
        assert all(Path(path).is_file() for path in paths), row.reason
    assert bool(apart) == (study in ("roadmap", "smooth_ap"))


@pytest.mark.parametrize("study", PAPER_STUDIES)
def test_batch_sizes_are_those_that_paper_or_code_state(study):
    """Figures print no numbers, and mostly no places on their axes either."""
    loaded = load_study(study)
    rows = study_ledger(loaded)
    for block in loaded.blocks:
        if block.name.startswith("figure") or block.recipe_name.startswith("listwise_released"):
            continue
        of_run = rows_of_run(rows, block.recipe_name, "smooth_ap", block.setting.options)
        row = of_run["batch_size"]
        stated = as_yaml(row.code or row.paper).value
        sizes = stated if isinstance(stated, list) else [stated]
        assert set(block.batch_sizes) <= set(sizes), block.name


def test_a_row_says_who_states_its_value():
    facts = [fact("a.b", "1", paper="2"), fact("a.c", "1"), fact("a.d", paper="1"), fact("a.e")]
    rows = ledger("made_up", dict.fromkeys(("a.b", "a.c", "a.d", "a.e"), 1), facts)
    assert [row.said_by for row in rows] == [
        "paper and code",
        "code alone",
        "paper alone",
        "nobody",
    ]
    assert "code alone" in as_text(rows, rows)


def repository(place: str) -> str:
    """Return the repository, owner/name, of "owner/name/path:line"."""
    return "/".join(place.split("/")[:2])


def test_what_a_ledger_says_of_code_names_repository_file_and_line():
    facts = [*shared_facts(), *(f for p in load_papers().values() for f in p.facts)]
    for fact in facts:
        places = fact.code_at.split()
        assert bool(places) == bool(fact.code), fact
        assert all(re.fullmatch(r"([\w+.-]+/){2}[\w/+.-]+:\d+(-\d+)?", p) for p in places), fact


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_a_recipe_names_one_repository_and_only_its_lines_are_evidence(name):
    study = load_study(name)
    named = {block.recipe_name: block.file.repository for block in study.blocks}
    assert all(re.fullmatch(r"[\w-]+/[\w-]+", each) for each in named.values())
    places = [(row.recipe, place) for row in study_ledger(study) for place in row.code_at.split()]
    assert len(places) > 50
    assert [each for each in places if repository(each[1]) != named[each[0]]] == []


def test_each_line_of_code_belongs_to_the_repository_of_a_recipe_that_its_row_names():
    studies = [load_study(name) for name in (*PAPER_STUDIES, "released")]
    blocks = [block for study in studies for block in study.blocks]
    named = {block.recipe_name: block.file.repository for block in blocks}
    for paper in load_papers().values():
        for fact in paper.facts:
            known = {repository for name, repository in named.items() if fact.is_of(name)}
            for place in fact.code_at.split():
                assert not known or repository(place) in known, fact


def test_a_line_of_another_program_is_no_evidence():
    facts = [
        replace(fact("a.b", "1"), code_at="one/code/file.py:3 other/code/file.py:4"),
        replace(fact("a.c", "2", paper="3"), code_at="other/code/file.py:5"),
        replace(fact("a.d", "4"), code_at="other/code/file.py:6"),
    ]
    rows = ledger("made_up", {"a.b": 1, "a.c": 3, "a.d": 4}, facts, "one/code")
    assert [(row.code, row.code_at) for row in rows] == [
        ("1", "one/code/file.py:3"),
        ("", ""),
        ("", ""),
    ]
    assert [row.equal for row in rows] == ["yes", "yes", "not stated"]


def test_runs_rest_on_what_is_of_their_recipe_loss_and_options():
    facts = [
        *(fact(item, effect="above 1", reason="why") for item in ("a.b", "a.c", "dataset")),
        *(fact(f"losses.{name}.x", effect="unknown", reason="why") for name in ("one", "two")),
        fact("options.big.a.b", "1", "none"),
        fact("options.small.a.c", effect="0.3 to 1", reason="why"),
    ]
    values = {"a.b": 2, "a.c": 3, "losses.one.x": 4, "losses.two.x": 5}
    rows = ledger("made_up", {**values, "options.big.a.b": 1, "options.small.a.c": 1}, facts)
    most = "a.c (above 1), losses.one.x (unknown), dataset (above 1)"
    plain = rows_of_run(rows, "made_up", "one", ())
    assert assumed(large_effects(plain)) == f"assumed: a.b (above 1), {most}"
    big = rows_of_run(rows, "made_up", "one", ("big",))
    assert assumed(large_effects(big)) == f"assumed: {most}"
    small = rows_of_run(rows, "made_up", "one", ("small",))
    assert "a.c (0.3 to 1)" in large_effects(small)
    assert rows_of_run(rows, "other", "one", ()) == {}
    assert assumed(large_effects({})) == ""
    assert assumed(("a.b (unknown)", "a.b (unknown)")) == "assumed: a.b (unknown)"


@pytest.mark.parametrize(
    ("item", "paper", "code", "ours", "words"),
    [
        ("optimizer.weight_decay", "4.0e-5", "4.0e-4", 4e-4, "weight decay 4.0e-4 for 4.0e-5"),
        ("options.big.training.epochs", "50", "12", 12, "epochs 12 for 50"),
        ("sampler.name", "one", "another", "another", "sampler another for one"),
        ("optimizer.weight_decay", "4.0e-4", "0.0004", 4e-4, ""),  # equal
        ("evaluation.whitening", "square-rooted PCA", "2048", 2048, ""),  # described
        ("training.epochs", "50", "12", 50, ""),  # ours follows the text
        ("training.epochs", "", "12", 12, ""),
    ],
)
def test_what_follows_the_code_against_the_text_is_said_in_words(item, paper, code, ours, words):
    [row] = ledger("made_up", {item: ours}, [fact(item, code, paper=paper)])
    assert row.against == words


def test_a_value_without_a_row_is_an_error_that_names_it():
    with pytest.raises(ReferenceDataError, match=r"made_up.*optimizer\.lr"):
        ledger("made_up", {"optimizer.lr": 0.1, "input.flip": True}, [fact("input.flip", "true")])


def test_a_recipe_of_no_paper_has_no_rows():
    assert (
        ledger("other", {"optimizer.lr": 0.1}, [fact("optimizer.lr"), fact("*", recipe="*")]) == []
    )


def test_values_are_compared_as_data_and_the_code_goes_before_the_paper():
    facts = [fact("optimizer.lr", "1.0e-5", paper="2.0e-5"), fact("input.flip", paper="true")]
    rows = ledger("made_up", {"optimizer.lr": 0.00001, "input.flip": False}, facts)
    assert [row.equal for row in rows] == ["yes", "no"]
    assert contradictions(rows) == [
        "made_up: input.flip is false, authors true: equal 'no' does not go with the effect 'none'"
    ]


def test_a_value_without_a_row_is_said_before_anything_starts(tmp_path):
    folder = write_paper(tmp_path)
    rows = HEADER + "glyphs_smoke,optimizer.lr,0.1,section 1,,,below 0.3,made up\n"
    (folder / "fidelity.csv").write_text(rows)
    said = refused_by("snakemake", "-n", "--config", "study=smoke", plugins=tmp_path)
    assert "recipe 'glyphs_smoke': no row of any fidelity.csv is about model" in said


HEADER = "recipe,item,paper,stated_in,code,code_at,effect,reason\n"


@pytest.mark.parametrize("column", ["paper", "code"])
@pytest.mark.parametrize("text", ["lr: 0.1: cosine", "[1", "# 1", "!!python/name:os.system x"])
def test_a_text_that_no_recipe_could_hold_is_named_by_file_line_and_column(
    tmp_path, messages, text, column
):
    cells = {"paper": "", "code": "", column: text}
    row = f'r,optimizer.lr,"{cells["paper"]}",,"{cells["code"]}",,none,\n'
    folder = write_paper(tmp_path)
    (folder / "fidelity.csv").write_text(f"{HEADER}r,a.b,1,,2,,none,\n{row}")
    with pytest.raises(PaperError) as caught:
        load_paper(folder)
    assert messages(caught.value) == [("value_error", column)]


def test_a_date_and_a_short_number_are_read_as_recipes_are(tmp_path):
    facts = [fact("a.day", "2001-99-99"), fact("a.lr", "1e-5")]
    rows = ledger("made_up", {"a.day": "2001-99-99", "a.lr": 0.00001}, facts)
    assert [row.equal for row in rows] == ["yes", "yes"]


def test_the_last_of_several_facts_counts():
    facts = [fact("optimizer.*", "1"), fact("optimizer.lr", "2")]
    rows = ledger("made_up", {"optimizer.lr": 2, "optimizer.momentum": 1}, facts)
    assert [row.equal for row in rows] == ["yes", "yes"]


def test_a_change_of_a_recipe_is_noticed():
    study = load_study("fast_ap")
    block = study.blocks[0]
    changed = replace(
        block, recipe=replace(block.recipe, optimizer=replace(block.recipe.optimizer, lr=1e-4))
    )
    rows = study_ledger(replace(study, blocks=(changed,)))
    assert [line.split(" is ")[0] for line in contradictions(rows)] == [
        f"{block.recipe_name}: optimizer.lr"
    ]


def test_the_text_counts_what_may_move_a_score():
    facts = [fact("a.b", "1", "above 1", reason="why"), fact("a.c", "1")]
    rows = ledger("made_up", {"a.b": 2, "a.c": 1}, facts)
    text = as_text(rows, rows)
    assert "why" in text
    assert "1 may move a score, 1 of these by more than 0.3 points" in text


@pytest.mark.parametrize(
    ("effect", "deviates", "large"),
    [
        ("no effect", False, False),
        ("none", False, False),
        ("below 0.3", True, False),
        ("0.3 to 1", True, True),
        ("above 1", True, True),
        ("unknown", True, True),
    ],
)
def test_an_effect_says_whether_a_score_may_move(effect, deviates, large):
    [row] = ledger("made_up", {"a.b": 2}, [fact("a.b", effect=effect)])
    assert row.deviates == deviates
    assert row.large == large


def test_losses_that_no_fact_names_are_not_the_papers_and_have_no_rows():
    rows = study_ledger(load_study("reality_check-on-cub"))
    losses = {row.item.split(".")[1] for row in rows if row.item.startswith("losses.")}
    assert "roadmap" in losses
    assert "circle" not in losses


OWN = """
study: mine
title: of one's own
seeds: [0]
blocks:
  - {{name: main, datasets: [cub], recipe: mine, losses: [smooth_ap, circle], batch_sizes: [64]}}
  - {{name: other, datasets: [cub], recipe: roadmap_cub_resnet50, losses: [roadmap],
     batch_sizes: [64], option: quick, override: {{training: {{precision: {}}}}}}}
metrics: [recall_at_1]
comparison: {{baseline: smooth_ap}}
references: {{published: [roadmap2021v2]}}
"""
MINE = "extends: roadmap_cub_resnet50\nlabel: resnet50\nsource: mine\n"
EFFECTS = {"tf32": "unknown", "bfloat16": None}


@pytest.mark.parametrize(("precision", "effect"), EFFECTS.items())
@pytest.mark.parametrize("place", ["training", "loss_precision"])
def test_a_run_in_tf32_has_a_row_of_unknown_effect(tmp_path, place, precision, effect):
    key = "precision" if place == "training" else "smooth_ap"
    (tmp_path / "recipes").mkdir()
    recipe = tmp_path / "recipes" / "mine.yaml"
    recipe.write_text(f"{MINE}{place}: {{{key}: {precision}}}\n")
    (tmp_path / "mine.yaml").write_text(OWN.format(precision))
    study = load_study(tmp_path / "mine.yaml")
    rows = {(row.recipe, row.item): row for row in study_ledger(study) if row.ours == "tf32"}
    mine = f"{place}.{key}"
    option = "options.quick.training.precision"
    places = {("mine", mine), ("roadmap_cub_resnet50", option)}
    assert set(rows) == (places if effect else set())
    assert {row.effect for row in rows.values()} == ({effect} if effect else set())
    numbers = {
        cell.label: " ".join(each.assumed) for cell, each in StudyGrid.of(study).candidates.items()
    }
    words = f"{mine} (unknown)" if effect else ""
    assert words in numbers["cub/resnet50/smooth_ap/bs64"]
    assert numbers
    # what a recipe says of one loss is not said of another
    assert (words in numbers["cub/resnet50/circle/bs64"]) == (place == "training" or not effect)
    assert ("precision (unknown)" in numbers["cub/resnet50~quick/roadmap/bs64"]) == bool(effect)


def test_the_papers_own_recipes_stay_as_they_are():
    for name in PAPER_STUDIES:
        runs = load_study(name).blocks
        assert not [b.name for b in runs if b.recipe.training.precision == "tf32"], name
