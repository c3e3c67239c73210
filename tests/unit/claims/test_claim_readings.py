"""The two readings of a claim: on the paper's condition, and on what a study ran."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from made_up_results import (
    candidate,
    grid_of,
    long_table,
    made_up_runs,
    made_up_study,
    run_table,
)
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.claims.claim_verdicts import COLUMNS, PART_COLUMNS, judge_claims, summary_text
from benchmark.core.errors import RunError
from benchmark.published.loading import load_papers
from benchmark.published.schema import Arm, Claim, Scope
from benchmark.published.vocabulary import load_vocabulary
from benchmark.verdicts.matching import StudyGrid

WIDTH = "recipe.model.embedding_dim"


def resolved(*arms):
    words = load_vocabulary()
    return tuple(arm.resolved(words) for arm in arms)


ROADMAP = Arm("roadmap")
SMOOTH_AP = Arm("smooth_ap")


def claim(*published, first=ROADMAP, second=(SMOOTH_AP,)):
    facts = ("table 1", "ROADMAP is better.", "beats", ("map_at_r",), published)
    arms = {"first": resolved(first), "second": resolved(*second)}
    return Claim(*facts, name="c", source="roadmap2021v2", **arms)


def verdicts(runs, claim, *special):
    """Return the verdicts by reading."""
    judged, _ = judge_claims(run_table(runs), [claim], grid_of(runs, *special))
    return judged.set_index("reading")


def verdict_of(runs, claim, *special, reading="here"):
    return verdicts(runs, claim, *special).loc[reading, "verdict"]


def on(dataset, backbone, sizes=(32,), **means):
    where = {"dataset": dataset, "setting": backbone, "batch_sizes": sizes}
    return long_table(means, seed=len(backbone), **where)


def test_the_paper_reading_needs_every_dataset_and_batch_size_of_the_paper():
    asked = claim(Scope(("cub", "sop"), backbone="resnet50", batch_sizes=(64, 128)))
    cub = on("cub", "resnet50", (64, 128), smooth_ap=0.5, roadmap=0.55)
    sop_64 = on("sop", "resnet50", (64,), smooth_ap=0.5, roadmap=0.55)
    three = verdicts(pd.concat([cub, sop_64]), asked).loc["published"]
    assert three["verdict"] == "inconclusive"
    assert three["parts"] == 4
    assert three["parts_run"] == 3
    assert three["parts_holding"] == 3
    sop_128 = on("sop", "resnet50", (128,), smooth_ap=0.5, roadmap=0.55)
    four = pd.concat([cub, sop_64, sop_128])
    assert verdict_of(four, asked, reading="published") == "supported"


def test_another_batch_size_counts_here_when_the_papers_has_only_one_side():
    asked = claim(Scope(("glyphs",), backbone="r", batch_sizes=(64,)))
    both = on("glyphs", "r", (32,), smooth_ap=0.5, roadmap=0.55)
    one_side = on("glyphs", "r", (64,), smooth_ap=0.5)
    found = verdicts(pd.concat([both, one_side]), asked)
    assert found.loc["published"]["verdict"] == "not_run"
    here = found.loc["here"]
    assert here["parts_holding"] == 1
    assert "batch 32" in here["reason"]


def test_the_backbone_is_that_of_the_recipe_and_not_the_label_s():
    asked = claim(Scope(("cub",), backbone="resnet50"))
    facts = {"batch_size": 32, "dataset": "cub", "backbone": "resnet50"}
    special = [
        candidate("other", "smooth_ap", **facts),
        candidate("other", "roadmap", **facts),
    ]
    runs = on("cub", "other", smooth_ap=0.5, roadmap=0.55)
    assert verdict_of(runs, asked, *special, reading="published") == "supported"
    assert verdict_of(runs, asked, reading="published") == "not_run"


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((32, 64, 128), 1),
        ((16, 32), 2),
    ],
)
def test_here_uses_the_stated_batch_sizes_where_they_were_run_and_all_others_elsewhere(
    sizes, parts
):
    runs = on("glyphs", "r", sizes, smooth_ap=0.5, roadmap=0.55)
    found = verdicts(runs, claim(Scope(("glyphs",), batch_sizes=(64, 999))))
    assert found.loc["here"]["parts"] == parts


def test_here_leaves_out_parts_without_runs_and_says_so():
    runs = on("glyphs", "r", smooth_ap=0.5, roadmap=0.55)
    rivals = [Arm(name) for name in ("fast_ap", "softbin_ap", "blackbox_ap", "smooth_ap")]
    row = verdicts(runs, claim(Scope(("glyphs",)), second=rivals)).loc["here"]
    assert row["verdict"] == "inconclusive"
    assert row["parts"] == 1
    assert row["parts_holding"] == 1
    assert row["reason"].endswith("3 without runs left out")


def test_arms_are_matched_by_data_like_published_numbers():
    sampler = {"by_option": ("recipe.sampler.name",), "batch_size": 32}
    random = candidate("r18~any", "fast_ap", recipe__sampler__name="m_per_class", **sampler)
    hard = candidate("r18", "fast_ap", batch_size=32, recipe__sampler__name="category_pairs")
    runs = pd.concat([on("sop", "r18", fast_ap=0.55), on("sop", "r18~any", fast_ap=0.5)])
    first = Arm("fast_ap", {"sampling": "hard"})
    second = Arm("fast_ap", {"sampling": "random"})
    asked = claim(Scope(("sop",), backbone="r18"), first=first, second=[second])
    found = verdicts(runs, asked, random, hard)
    assert set(found["verdict"]) == {"supported"}


def test_an_arm_without_a_dimension_is_the_recipe_s_own():
    large = candidate("r50~x", "roadmap", batch_size=32, embedding_dim=2048, by_option=(WIDTH,))
    runs = pd.concat([on("sop", "r50", roadmap=0.5), on("sop", "r50~x", roadmap=0.55)])
    first = Arm("roadmap", embedding_dim=2048)
    asked = claim(Scope(("sop",)), first=first, second=[ROADMAP])
    found = verdicts(runs, asked, large)
    assert set(found["verdict"]) == {"supported"}


def claim_named(name):
    return next(each for each in load_papers().claims() if each.name == name)


def larger_embeddings(runs, grid):
    asked = claim_named("larger_embeddings_help_roadmap")
    table, _ = judge_claims(run_table(runs), [asked], grid)
    return table.set_index("reading").loc["here"]


def test_2048_dimensions_are_compared_with_512_and_never_with_the_recipe_s_128():
    place = {"dataset": "sop", "backbone": "resnet50"}
    facts = {"loss": "roadmap", "batch_size": 128, "by_option": (WIDTH,), **place}
    of_recipe = candidate("r", "roadmap", embedding_dim=128, **place)
    wide = candidate("r~wide", embedding_dim=512, **facts)
    widest = candidate("r~widest", embedding_dim=2048, **facts)
    runs_of_recipe = on("sop", "r", (128,), roadmap=0.5)
    runs_wide = on("sop", "r~wide", (128,), roadmap=0.6)
    runs_widest = on("sop", "r~widest", (128,), roadmap=0.55)
    runs = pd.concat([runs_widest, runs_of_recipe, runs_wide])
    row = larger_embeddings(runs, grid_of(runs, of_recipe, wide, widest))
    assert row["verdict"] == "contradicted", "against the recipe's 128 it would hold"
    assert "roadmap dim 2048 - roadmap dim 512" in row["part"]
    runs = pd.concat([runs_widest, runs_of_recipe])
    alone = larger_embeddings(runs, grid_of(runs, of_recipe, widest))
    assert alone["verdict"] == "not_run"
    assert "embedding dimension 512" in alone["reason"]


def test_2048_dimensions_are_compared_with_the_512_of_the_paper_s_recipe():
    grid = StudyGrid.of(benchmark.study.load_study("roadmap"))
    tables = []
    for cell, matched in grid.candidates.items():
        if cell.dataset == "sop" and "sota" in cell.setting.options:
            mean = {2048: 0.55, 512: 0.5}[matched.settings[WIDTH]]
            tables.append(on("sop", str(cell.setting), (128,), roadmap=mean))
    row = larger_embeddings(pd.concat(tables), grid)
    assert row["verdict"] == "supported"
    assert row["part"].endswith("dim 2048 - roadmap dim 512")


def test_two_sides_that_are_the_same_runs_decide_nothing():
    plain = candidate("r18", "fast_ap", batch_size=32, loss__bins=10)
    first = Arm("fast_ap", {"bins": 10})
    asked = claim(Scope(("sop",)), first=first, second=[Arm("fast_ap")])
    row = verdicts(on("sop", "r18", fast_ap=0.5), asked, plain).loc["here"]
    assert row["verdict"] == "not_run"
    assert "same runs" in row["reason"]


def test_preferred_runs_are_taken_where_there_are_any():
    sota = candidate("r18~sota", "roadmap", batch_size=32, by_option=("recipe.input.image_size",))
    asked = claim(Scope(("sop",)), first=Arm("roadmap", prefer={"setup": "sota"}))
    plain = on("sop", "r18", smooth_ap=0.5, roadmap=0.45)
    assert verdict_of(plain, asked) == "contradicted"
    both = pd.concat([plain, on("sop", "r18~sota", roadmap=0.55)])
    assert verdict_of(both, asked, sota) == "supported"


def test_every_protocol_of_a_dataset_is_asked_here():
    means = {"smooth_ap": 0.5, "roadmap": 0.55}
    small = long_table(means, split="small", dataset="vehicleid")
    large = long_table(means, split="large", dataset="vehicleid")
    found = verdicts(pd.concat([small, large]), claim(Scope(("vehicleid",))))
    assert found.loc["here"]["parts"] == 2


def test_a_claim_that_is_outside_is_never_decided_as_published_and_says_why():
    asked = claim(Scope(("cub",), backbone="resnet50", batch_sizes=(64,)))
    runs = on("cub", "resnet50", (64,), smooth_ap=0.5, roadmap=0.55)
    never = dataclasses.replace(asked, outside="Faces are not to be had")
    found = verdicts(runs, never)
    published = found.loc["published"]
    assert published["verdict"] == "not_run"
    assert published["reason"] == "Faces are not to be had"
    assert found.loc["here"]["verdict"] == "supported"
    text = summary_text(found.reset_index())
    assert "outside      c: Faces are not to be had" in text
    assert text.count("Faces") == 1


def test_no_runs_at_all_leave_everything_not_run():
    no_runs = long_table({"smooth_ap": 0.5}).iloc[:0]
    nothing = run_table(no_runs)
    found, parts = judge_claims(nothing, load_papers().claims(), grid_of(no_runs))
    assert set(found["verdict"]) == {"not_run"}
    assert list(found) == COLUMNS
    assert list(parts) == PART_COLUMNS
    assert not found["reason"].eq("").any()


@pytest.fixture(scope="module")
def made_up():
    """The verdicts on all claims, and their parts, of a study with stand-in data."""
    study = made_up_study()
    return judge_claims(run_table(made_up_runs(study)), load_papers().claims(), StudyGrid.of(study))


def test_a_study_on_stand_in_data_is_asked_no_claim_and_shows_its_comparisons(made_up):
    table, _ = made_up
    words = table.groupby("reading")["verdict"].value_counts()
    assert words["published"].to_dict() == {"not_run": len(load_papers().claims())}
    assert set(words["here"].index) == {"not_asked", "not_run"}
    sup_ap = table.set_index(["claim", "reading"]).loc["sup_ap_beats_smooth_ap", "here"]
    assert sup_ap["verdict"] == "not_asked"
    assert sup_ap["p"] <= sup_ap["alpha"]


def test_the_deciding_part_is_one_of_the_parts(made_up):
    table, parts = made_up
    keys = ["claim", "reading", "part"]
    decided = table[table["part"].notna()]
    found = decided.merge(parts, on=keys)
    assert len(found) == len(decided)
    assert len(parts) == table["parts"].sum()


def test_the_summary_counts_both_readings_and_gives_reasons(made_up):
    table, _ = made_up
    text = summary_text(table)
    assert "published (" in text
    assert "here (" in text
    assert "not_asked" in text
    assert "sup_ap_beats_smooth_ap" not in text


def test_the_verb_writes_both_tables(tmp_path, monkeypatch):
    study = made_up_study()
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    run_table(made_up_runs(study)).write(tmp_path / "made_up")
    done = CliRunner().invoke(app, ["claims", "made_up", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "made_up" / "claims.csv")
    parts = pd.read_csv(tmp_path / "made_up" / "claims_parts.csv")
    assert list(table) == COLUMNS
    assert list(parts) == PART_COLUMNS
    asked = table[table["claim"] == "sup_ap_beats_smooth_ap"]
    assert asked["p"].notna().any()


def test_the_verb_lists_claims_and_asks_for_a_study_otherwise():
    listed = CliRunner().invoke(app, ["claims", "--list"])
    assert listed.exit_code == 0
    assert "roadmap_beats_ap_losses " in listed.output
    assert CliRunner().invoke(app, ["claims"]).exit_code == 2


def test_the_verb_needs_a_collected_study(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: made_up_study())
    done = CliRunner().invoke(app, ["claims", "made_up", "--results", str(tmp_path)])
    assert isinstance(done.exception, RunError)


def test_expanded_queries_are_compared_with_the_plain_ones_of_the_same_runs():
    where = {"dataset": "sfm120k", "setting": "r101"}
    plain_runs = long_table({"softbin_ap": 0.5}, split="roxford5k_medium", **where)
    expanded_runs = long_table({"softbin_ap": 0.55}, split="roxford5k_medium+aqe", seed=1, **where)
    runs = pd.concat([plain_runs, expanded_runs])
    scope = Scope(("sfm120k",), "roxford5k_medium", "r101", (32,))
    expanded = Arm("softbin_ap", {"expansion": "aqe"})
    plain = Arm("softbin_ap")
    found = verdicts(runs, claim(scope, first=expanded, second=[plain]))
    assert found["verdict"].tolist() == ["supported", "supported"]
    assert found["parts"].tolist() == [1, 1]
    turned = verdicts(runs, claim(scope, first=plain, second=[expanded]))
    assert turned["verdict"].tolist() == ["contradicted", "contradicted"]


@pytest.mark.parametrize(
    "runs",
    [
        on("cub", "resnet18", (64,), smooth_ap=0.5, roadmap=0.55),
        on("glyphs", "r", smooth_ap=0.5, roadmap=0.55),
    ],
    ids=["backbone", "dataset"],
)
def test_runs_with_another_backbone_or_dataset_are_shown_and_not_asked(runs):
    found = verdicts(runs, claim(Scope(("cub",), backbone="resnet50", batch_sizes=(64,))))
    assert found.loc["published"]["verdict"] == "not_run"
    here = found.loc["here"]
    assert here["verdict"] == "not_asked"
    assert here["parts_holding"] == 1
    assert "the paper says it of cub; resnet50; batch 64" in here["reason"]
    assert np.isnan(here["p_contradicted"])
    assert here["estimate"] > 0


def test_a_claim_that_is_not_asked_is_never_contradicted_and_counts_in_no_rate():
    asked = claim(Scope(("cub",), backbone="resnet50"))
    elsewhere = on("glyphs", "r", smooth_ap=0.6, roadmap=0.5)
    there = on("cub", "resnet50", smooth_ap=0.6, roadmap=0.5)
    not_asked = verdicts(elsewhere, asked)
    assert not_asked.loc["here"]["verdict"] == "not_asked"
    assert verdict_of(there, asked) == "contradicted"
    both = verdicts(pd.concat([elsewhere, there]), asked).loc["here"]
    assert both["verdict"] == "contradicted"
    assert both["condition"] == "cub resnet50"
    text = summary_text(not_asked.reset_index())
    assert "1 not_asked" in text
    assert "luck alone" not in text


def test_false_contradictions_are_controlled_over_all_claims_of_a_reading():
    rng = np.random.default_rng(0)
    losses = [f"l{number}" for number in range(40)]
    means = dict.fromkeys(["base", *losses], 0.5)
    base = claim(Scope(("glyphs",), backbone="r"), second=[Arm("base")])
    asked = [dataclasses.replace(base, first=(Arm(loss),), name=loss) for loss in losses]
    alone = 0
    controlled = 0
    for _ in range(20):
        runs = long_table(means, dataset="glyphs", setting="r")
        runs["value"] = rng.normal(0.5, 0.003, len(runs))
        table, _ = judge_claims(run_table(runs), asked, grid_of(runs))
        here = table[table["reading"] == "here"]
        alone += (here["p_contradicted"] <= 0.05).any()
        controlled += (here["verdict"] == "contradicted").any()
        assert (here["q_contradicted"] >= here["p_contradicted"]).all()
    # all sentences are true on their edge
    assert alone >= 10
    assert controlled <= 4


def test_a_claim_is_tested_at_the_epoch_of_its_paper_and_an_own_one_at_the_last():
    """FastAP is printed with 91.9; the last epoch alone would contradict the sentence."""
    asked = claim_named("smooth_ap_beats_fast_ap_on_vehicles")
    cell = {"dataset": "vehicleid", "setting": "resnet50", "batch_sizes": (384,), "split": "small"}
    best = long_table({"smooth_ap": 0.949}, **cell).query("selection == 'last'")
    last = long_table({"smooth_ap": 0.9}, **cell).query("selection == 'last'")
    curve = pd.concat([best.assign(epoch=2), last.assign(epoch=4)])
    runs = pd.concat([curve.assign(selection="curve"), last])
    of_paper = verdicts(runs, asked).loc["published"]
    assert of_paper["selection"] == "best_recall_at_1"
    assert of_paper["verdict"] == "supported"
    ours = dataclasses.replace(asked, source="this suite, study s")
    of_ours = verdicts(runs, ours).loc["published"]
    assert of_ours["selection"] == "last"
    assert of_ours["verdict"] == "contradicted"
