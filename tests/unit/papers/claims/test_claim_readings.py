"""The two readings of a claim: on the paper's condition, and on what a study ran."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from made_up_results import (
    candidate,
    candidates_of,
    long_table,
    made_up_runs,
    made_up_study,
    run_table,
)
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.core.errors import RunError
from benchmark.papers.claim_verdicts import COLUMNS, PART_COLUMNS, judge_claims, summary_text
from benchmark.papers.matching import candidates
from benchmark.papers.paper import claims_of
from benchmark.papers.schema import Arm, Claim, Scope
from benchmark.papers.vocabulary import load_vocabulary

AP_LOSSES = ("fast_ap", "softbin_ap", "blackbox_ap", "smooth_ap")
WIDTH = "recipe.model.embedding_dim"


def claim(published, first="roadmap", second="smooth_ap"):
    arms = {
        side: tuple(
            (arm if isinstance(arm, Arm) else Arm(arm)).resolved(load_vocabulary())
            for arm in (arms if isinstance(arms, tuple) else (arms,))
        )
        for side, arms in (("first", first), ("second", second))
    }
    facts = ("table 1", "ROADMAP is better.", "beats", ("map_at_r",), published)
    return Claim(*facts, name="c", source="roadmap2021v2", **arms)


def verdicts(runs, claim, *special):
    judged, _ = judge_claims(run_table(runs), [claim], candidates_of(runs, *special))
    return judged.set_index(["claim", "reading"])


def on(dataset, backbone, sizes=(32,), **means):
    return long_table(
        means, dataset=dataset, setting=backbone, batch_sizes=sizes, seed=len(backbone)
    )


def test_the_paper_reading_needs_every_dataset_and_batch_size_of_the_paper():
    condition = (Scope(("cub", "sop"), backbone="resnet50", batch_sizes=(64, 128)),)
    cub = on("cub", "resnet50", (64, 128), smooth_ap=0.5, roadmap=0.55)
    sop = on("sop", "resnet50", (64,), smooth_ap=0.5, roadmap=0.55)
    row = verdicts(pd.concat([cub, sop]), claim(condition)).loc["c", "published"]
    assert (row["verdict"], row["parts"], row["parts_run"], row["parts_holding"]) == (
        "inconclusive",
        4,
        3,
        3,
    )
    rest = on("sop", "resnet50", (128,), smooth_ap=0.5, roadmap=0.55)
    assert (
        verdicts(pd.concat([cub, sop, rest]), claim(condition)).loc["c", "published"]["verdict"]
        == "supported"
    )


def test_another_batch_size_counts_here_when_the_papers_has_only_one_side():
    condition = (Scope(("glyphs",), backbone="r", batch_sizes=(64,)),)
    runs = pd.concat(
        [
            on("glyphs", "r", (32,), smooth_ap=0.5, roadmap=0.55),
            on("glyphs", "r", (64,), smooth_ap=0.5),
        ]
    )
    found = verdicts(runs, claim(condition))
    assert found.loc["c", "published"]["verdict"] == "not_run"
    here = found.loc["c", "here"]
    assert here["parts_holding"] == 1
    assert "batch 32" in here["reason"]


def test_the_backbone_is_that_of_the_recipe_and_not_the_label_s():
    condition = (Scope(("cub",), backbone="resnet50"),)
    special = [
        candidate("other", loss, batch_size=32, dataset="cub", backbone="resnet50")
        for loss in ("smooth_ap", "roadmap")
    ]
    runs = on("cub", "other", smooth_ap=0.5, roadmap=0.55)
    assert (
        verdicts(runs, claim(condition), *special).loc["c", "published"]["verdict"] == "supported"
    )
    assert verdicts(runs, claim(condition)).loc["c", "published"]["verdict"] == "not_run"


def test_here_uses_the_stated_batch_sizes_where_they_were_run_and_all_others_elsewhere():
    condition = (Scope(("glyphs",), batch_sizes=(64, 999)),)
    runs = on("glyphs", "r", (32, 64, 128), smooth_ap=0.5, roadmap=0.55)
    assert verdicts(runs, claim(condition)).loc["c", "here"]["parts"] == 1
    runs = on("glyphs", "r", (16, 32), smooth_ap=0.5, roadmap=0.55)
    assert verdicts(runs, claim(condition)).loc["c", "here"]["parts"] == 2


def test_here_leaves_out_parts_without_runs_and_says_so():
    condition = (Scope(("glyphs",)),)
    runs = on("glyphs", "r", smooth_ap=0.5, roadmap=0.55)
    row = verdicts(runs, claim(condition, second=AP_LOSSES)).loc["c", "here"]
    assert (row["verdict"], row["parts"], row["parts_holding"]) == ("inconclusive", 1, 1)
    assert row["reason"].endswith("3 without runs left out")


def test_arms_are_matched_by_data_like_published_numbers():
    sampler = {"by_option": ("recipe.sampler.name",), "batch_size": 32}
    random = candidate("r18~any", "fast_ap", recipe__sampler__name="m_per_class", **sampler)
    hard = candidate("r18", "fast_ap", batch_size=32, recipe__sampler__name="category_pairs")
    runs = pd.concat([on("sop", "r18", fast_ap=0.55), on("sop", "r18~any", fast_ap=0.5)])
    arms = (Arm("fast_ap", {"sampling": word}) for word in ("hard", "random"))
    scope = (Scope(("sop",), backbone="r18"),)
    found = verdicts(runs, claim(scope, *((arm,) for arm in arms)), random, hard)
    assert set(found["verdict"]) == {"supported"}


def test_an_arm_without_a_dimension_is_the_recipe_s_own():
    large = candidate("r50~x", "roadmap", batch_size=32, embedding_dim=2048, by_option=(WIDTH,))
    runs = pd.concat([on("sop", "r50", roadmap=0.5), on("sop", "r50~x", roadmap=0.55)])
    asked = claim((Scope(("sop",)),), Arm("roadmap", embedding_dim=2048), Arm("roadmap"))
    assert set(verdicts(runs, asked, large)["verdict"]) == {"supported"}


def larger_embeddings(runs, grid):
    (found,) = (each for each in claims_of() if each.name == "larger_embeddings_help_roadmap")
    return judge_claims(run_table(runs), [found], grid)[0].set_index("reading").loc["here"]


def test_2048_dimensions_are_compared_with_512_and_never_with_the_recipe_s_128():
    place = {"dataset": "sop", "backbone": "resnet50"}
    facts = {"loss": "roadmap", "batch_size": 128, "by_option": (WIDTH,), **place}
    special = [candidate("r", "roadmap", embedding_dim=128, **place)]
    special += [
        candidate(f"r~{name}", embedding_dim=dim, **facts)
        for name, dim in (("wide", 512), ("widest", 2048))
    ]
    parts = {"r~widest": 0.55, "r": 0.5, "r~wide": 0.6}
    tables = {name: on("sop", name, (128,), roadmap=mean) for name, mean in parts.items()}
    runs = pd.concat(tables.values())
    row = larger_embeddings(runs, candidates_of(runs, *special))
    assert row["verdict"] == "contradicted", "against the recipe's 128 it would hold"
    assert "roadmap dim 2048 - roadmap dim 512" in row["part"]
    runs = pd.concat([tables["r~widest"], tables["r"]])
    alone = larger_embeddings(runs, candidates_of(runs, *special[:1], special[2]))
    assert alone["verdict"] == "not_run"
    assert "embedding dimension 512" in alone["reason"]


def test_2048_dimensions_are_compared_with_the_512_of_the_paper_s_recipe():
    grid = candidates(benchmark.study.load_study("roadmap"))
    cells = {
        each.settings[WIDTH]: cell
        for cell, each in grid.items()
        if cell.dataset == "sop" and "sota" in cell.setting.options
    }
    runs = pd.concat(
        [
            on("sop", str(cells[dim].setting), (128,), roadmap=mean)
            for dim, mean in ((2048, 0.55), (512, 0.5))
        ]
    )
    row = larger_embeddings(runs, grid)
    assert row["verdict"] == "supported"
    assert row["part"].endswith("dim 2048 - roadmap dim 512")


def test_two_sides_that_are_the_same_runs_decide_nothing():
    plain = candidate("r18", "fast_ap", batch_size=32, loss__bins=10)
    asked = claim((Scope(("sop",)),), Arm("fast_ap", {"bins": 10}), Arm("fast_ap"))
    row = verdicts(on("sop", "r18", fast_ap=0.5), asked, plain).loc["c", "here"]
    assert (row["verdict"], "same runs" in row["reason"]) == ("not_run", True)


def test_preferred_runs_are_taken_where_there_are_any():
    sota = candidate("r18~sota", "roadmap", batch_size=32, by_option=("recipe.input.image_size",))
    asked = claim((Scope(("sop",)),), Arm("roadmap", prefer={"setup": "sota"}), Arm("smooth_ap"))
    plain = on("sop", "r18", smooth_ap=0.5, roadmap=0.45)
    assert verdicts(plain, asked).loc["c", "here"]["verdict"] == "contradicted"
    both = pd.concat([plain, on("sop", "r18~sota", roadmap=0.55)])
    assert verdicts(both, asked, sota).loc["c", "here"]["verdict"] == "supported"


def test_every_protocol_of_a_dataset_is_asked_here():
    tables = [
        long_table({"smooth_ap": 0.5, "roadmap": 0.55}, split=split, dataset="vehicleid")
        for split in "ab"
    ]
    asked = claim((Scope(("vehicleid",)),))
    assert verdicts(pd.concat(tables), asked).loc["c", "here"]["parts"] == 2


def test_a_claim_that_is_outside_is_never_decided_as_published_and_says_why():
    condition = (Scope(("cub",), backbone="resnet50", batch_sizes=(64,)),)
    runs = on("cub", "resnet50", (64,), smooth_ap=0.5, roadmap=0.55)
    never = dataclasses.replace(claim(condition), outside="Faces are not to be had")
    found = verdicts(runs, never)
    published, here = (found.loc["c", reading] for reading in ("published", "here"))
    assert (published["verdict"], published["reason"]) == ("not_run", "Faces are not to be had")
    assert here["verdict"] == "supported"
    text = summary_text(found.reset_index())
    assert "outside      c: Faces are not to be had" in text
    assert text.count("Faces") == 1


def test_no_runs_at_all_leave_everything_not_run():
    nothing = run_table(long_table({"smooth_ap": 0.5}).iloc[:0])
    found, parts = judge_claims(nothing, claims_of(), {})
    assert set(found["verdict"]) == {"not_run"}
    assert list(found) == COLUMNS
    assert list(parts) == PART_COLUMNS
    assert not found["reason"].eq("").any()


@pytest.fixture(scope="module")
def made_up():
    study = made_up_study()
    table = run_table(made_up_runs(study))
    return study, judge_claims(table, claims_of(), candidates(study))


def test_a_study_on_stand_in_data_is_asked_no_claim_and_shows_its_comparisons(made_up):
    table = made_up[1][0]
    words = table.groupby("reading")["verdict"].value_counts()
    assert words["published"].to_dict() == {"not_run": len(claims_of())}
    assert set(words["here"].index) == {"not_asked", "not_run"}
    sup_ap = table.set_index(["claim", "reading"]).loc["sup_ap_beats_smooth_ap", "here"]
    assert sup_ap["verdict"] == "not_asked"
    assert sup_ap["p"] <= sup_ap["alpha"]


def test_the_deciding_part_is_one_of_the_parts(made_up):
    table, parts = made_up[1]
    keys = set(parts[["claim", "reading", "part"]].itertuples(index=False, name=None))
    decided = table[table["part"].notna()]
    assert set(decided[["claim", "reading", "part"]].itertuples(index=False, name=None)) <= keys
    assert len(parts) == table["parts"].sum()


def test_the_summary_counts_both_readings_and_gives_reasons(made_up):
    text = summary_text(made_up[1][0])
    assert "published (" in text
    assert "here (" in text
    assert "not_asked" in text
    assert "sup_ap_beats_smooth_ap" not in text


def test_the_verb_writes_both_tables(tmp_path, monkeypatch, made_up):
    study = made_up[0]
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    run_table(made_up_runs(study)).write(tmp_path / "made_up")
    done = CliRunner().invoke(app, ["claims", "made_up", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "made_up" / "claims.csv")
    parts = pd.read_csv(tmp_path / "made_up" / "claims_parts.csv")
    assert (list(table), list(parts)) == (COLUMNS, PART_COLUMNS)
    assert np.isfinite(table.loc[table["claim"] == "sup_ap_beats_smooth_ap", "p"]).any()


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
    scores = {"roxford5k_medium": 0.5, "roxford5k_medium+aqe": 0.55}
    parts = [
        long_table({"softbin_ap": score}, dataset="sfm120k", setting="r101", seed=seed).assign(
            split=split
        )
        for seed, (split, score) in enumerate(scores.items())
    ]
    runs = pd.concat(parts)
    scope = (Scope(("sfm120k",), "roxford5k_medium", "r101", (32,)),)
    expanded = Arm("softbin_ap", {"expansion": "aqe"})
    plain = Arm("softbin_ap")
    found = verdicts(runs, claim(scope, expanded, plain))
    assert list(found["verdict"]) == ["supported", "supported"]
    assert list(found["parts"]) == [1, 1]
    turned = verdicts(runs, claim(scope, plain, expanded))
    assert list(turned["verdict"]) == ["contradicted", "contradicted"]


def test_runs_with_another_backbone_or_dataset_are_shown_and_not_asked():
    condition = (Scope(("cub",), backbone="resnet50", batch_sizes=(64,)),)
    for runs in (
        on("cub", "resnet18", (64,), smooth_ap=0.5, roadmap=0.55),
        on("glyphs", "r", smooth_ap=0.5, roadmap=0.55),
    ):
        found = verdicts(runs, claim(condition))
        assert found.loc["c", "published"]["verdict"] == "not_run"
        here = found.loc["c", "here"]
        assert (here["verdict"], here["parts_holding"]) == ("not_asked", 1)
        assert "the paper says it of cub; resnet50; batch 64" in here["reason"]
        assert np.isnan(here["p_contradicted"])
        assert here["estimate"] > 0


def test_a_claim_that_is_not_asked_is_never_contradicted_and_counts_in_no_rate():
    condition = (Scope(("cub",), backbone="resnet50"),)
    elsewhere = on("glyphs", "r", smooth_ap=0.6, roadmap=0.5)
    there = on("cub", "resnet50", smooth_ap=0.6, roadmap=0.5)
    here = [verdicts(runs, claim(condition)).loc["c", "here"] for runs in (elsewhere, there)]
    assert [row["verdict"] for row in here] == ["not_asked", "contradicted"]
    both = verdicts(pd.concat([elsewhere, there]), claim(condition)).loc["c", "here"]
    assert both["verdict"] == "contradicted"
    assert both["condition"] == "cub resnet50"
    text = summary_text(verdicts(elsewhere, claim(condition)).reset_index())
    assert "1 not_asked" in text
    assert "luck alone" not in text


def test_false_contradictions_are_controlled_over_all_claims_of_a_reading():
    rng = np.random.default_rng(0)
    means = {"base": 0.5, **{f"l{number}": 0.5 for number in range(40)}}
    scope = (Scope(("glyphs",), backbone="r"),)
    asked = [
        Claim(
            "table 1",
            "One is better.",
            "beats",
            ("map_at_r",),
            scope,
            first=(Arm(f"l{number}"),),
            second=(Arm("base"),),
            name=f"c{number}",
        )
        for number in range(40)
    ]
    found = []
    for _ in range(20):
        runs = long_table(means, dataset="glyphs", setting="r")
        runs["value"] = rng.normal(0.5, 0.003, len(runs))
        table, _ = judge_claims(run_table(runs), asked, candidates_of(runs))
        found.append(table[table["reading"] == "here"])
    alone = [(table["p_contradicted"] <= 0.05).any() for table in found]
    controlled = [(table["verdict"] == "contradicted").any() for table in found]
    # all sentences are true on their edge
    assert sum(alone) >= 10
    assert sum(controlled) <= 4
    assert all((table["q_contradicted"] >= table["p_contradicted"]).all() for table in found)


def test_a_claim_is_tested_at_the_epoch_of_its_paper_and_an_own_one_at_the_last():
    """FastAP is printed with 91.9; the last epoch alone would contradict the sentence."""
    (asked,) = (each for each in claims_of() if each.name == "smooth_ap_beats_fast_ap_on_vehicles")
    cell = {"dataset": "vehicleid", "setting": "resnet50", "batch_sizes": (384,), "split": "small"}
    best, last = (
        long_table({"smooth_ap": value}, **cell).query("selection == 'last'")
        for value in (0.949, 0.9)
    )
    curve = [best.assign(epoch=2), last.assign(epoch=4)]
    runs = pd.concat([*(rows.assign(selection="curve") for rows in curve), last])
    own = dataclasses.replace(asked, source="this suite, study s")
    for each, selection, word in (
        (asked, "best_recall_at_1", "supported"),
        (own, "last", "contradicted"),
    ):
        row = verdicts(runs, each).loc[asked.name, "published"]
        assert (row["selection"], row["verdict"]) == (selection, word)
