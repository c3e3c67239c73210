"""The two readings of a claim: on the paper's condition, and on what a study ran."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from long_tables import long_table, write_long
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, RunError
from benchmark.papers.claims import COLUMNS, PART_COLUMNS, judge_claims, load_claims, summary_text
from benchmark.papers.claims.model import Arm, Claim, Condition
from benchmark.papers.verdicts.facts import study_facts
from benchmark.papers.verdicts.search import find_verdicts
from benchmark.report.tables.as_csv import to_csv
from benchmark.report.tables.claims import build
from benchmark.report.tables.table import NothingToShow
from benchmark.study.model import References

AP_LOSSES = ("fast_ap", "softbin_ap", "blackbox_ap", "smooth_ap")


ROADMAP, SMOOTH_AP = (Arm("roadmap"),), (Arm("smooth_ap"),)


def claim(published, first=ROADMAP, second=SMOOTH_AP, **options):
    return Claim(
        "c", "roadmap2021v2", "table 1", "ROADMAP is better.", "beats", ("map_at_r",), published, 0.05, first, second,
        {}, options,
    )  # fmt: skip


def verdicts(runs, *claims, facts=None):
    return judge_claims(runs, claims, facts or {})[0].set_index(["claim", "reading"])


def on(dataset, backbone, sizes=(32,), **means):
    return long_table(
        means, dataset=dataset, setting=backbone, batch_sizes=sizes, seed=len(backbone)
    )


def test_the_paper_reading_needs_every_dataset_and_batch_size_of_the_paper():
    condition = (Condition(("cub", "sop"), backbone="resnet50", batch_sizes=(64, 128)),)
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
    condition = (Condition(("glyphs",), backbone="r", batch_sizes=(64,)),)
    runs = pd.concat(
        [
            on("glyphs", "r", (32,), smooth_ap=0.5, roadmap=0.55),
            on("glyphs", "r", (64,), smooth_ap=0.5),
        ]
    )
    found = verdicts(runs, claim(condition))
    assert found.loc["c", "published"]["verdict"] == "not_run"
    assert (
        found.loc["c", "here"]["verdict"] == "supported"
        and "batch 32" in found.loc["c", "here"]["reason"]
    )


def test_another_backbone_or_dataset_counts_here_and_not_as_published():
    condition = (Condition(("cub",), backbone="resnet50", batch_sizes=(64,)),)
    for runs in (
        on("cub", "resnet18", (64,), smooth_ap=0.5, roadmap=0.55),
        on("glyphs", "r", smooth_ap=0.5, roadmap=0.55),
    ):
        found = verdicts(runs, claim(condition))
        assert found.loc["c", "published"]["verdict"] == "not_run"
        assert found.loc["c", "here"]["verdict"] == "supported"


def test_the_backbone_may_come_from_what_the_study_knows_of_a_setting():
    condition = (Condition(("cub",), backbone="resnet50"),)
    facts = {("cub", "resnet50_other"): {"backbone": "resnet50"}}
    found = verdicts(
        on("cub", "resnet50_other", smooth_ap=0.5, roadmap=0.55), claim(condition), facts=facts
    )
    assert found.loc["c", "published"]["verdict"] == "supported"


def test_here_uses_the_stated_batch_sizes_where_they_were_run_and_all_others_elsewhere():
    condition = (Condition(("cub",), batch_sizes=(64, 999)),)
    runs = on("glyphs", "r", (32, 64, 128), smooth_ap=0.5, roadmap=0.55)
    assert verdicts(runs, claim(condition)).loc["c", "here"]["parts"] == 1
    runs = on("glyphs", "r", (16, 32), smooth_ap=0.5, roadmap=0.55)
    assert verdicts(runs, claim(condition)).loc["c", "here"]["parts"] == 2


def test_here_leaves_out_parts_without_runs_and_says_so():
    condition = (Condition(("cub",)),)
    second = tuple(Arm(name) for name in AP_LOSSES)
    runs = on("glyphs", "r", smooth_ap=0.5, roadmap=0.55)
    row = verdicts(runs, claim(condition, second=second)).loc["c", "here"]
    assert (row["verdict"], row["parts"]) == ("supported", 1)
    assert row["reason"].endswith("3 without runs left out")


def test_conditions_are_matched_like_published_rows_and_the_plain_loss_can_stand_in():
    hard = Arm("fast_ap", ("sampling=hard", ""))
    random = Arm("fast_ap", ("sampling=random",))
    runs = pd.concat([on("sop", "r18", fast_ap=0.55), on("sop", "r18~random", fast_ap=0.5)])
    found = verdicts(runs, claim((Condition(("sop",), backbone="r18"),), (hard,), (random,)))
    assert set(found["verdict"]) == {"supported"}


def test_an_arm_without_a_dimension_is_the_recipe_s_own():
    large, own = Arm("roadmap", embedding_dim="2048"), Arm("roadmap")
    runs = pd.concat([on("sop", "r50", roadmap=0.5), on("sop", "r50~dim2048", roadmap=0.55)])
    assert set(verdicts(runs, claim((Condition(("sop",)),), (large,), (own,)))["verdict"]) == {
        "supported"
    }


def larger_embeddings(*settings: tuple[str, float], dataset, facts):
    runs = pd.concat([on(dataset, setting, (128,), roadmap=score) for setting, score in settings])
    found = next(each for each in load_claims() if each.name == "larger_embeddings_help_roadmap")
    return judge_claims(runs, [found], facts)[0].set_index("reading")


def test_2048_dimensions_are_compared_with_512_and_never_with_the_recipe_s_128():
    facts = {
        ("glyphs_1k", name): {"embedding_dim": 128, "backbone": "r"}
        for name in ("r", "r~dim512", "r~dim2048")
    }
    large, recipe = ("r~dim2048", 0.55), ("r", 0.5)
    row = larger_embeddings(large, recipe, ("r~dim512", 0.6), dataset="glyphs_1k", facts=facts).loc[
        "here"
    ]
    assert row["verdict"] == "contradicted", "against the recipe's 128 it would hold"
    assert (
        "roadmap dim 2048 (plain for setup=sota) - roadmap dim 512 (plain for setup=sota)"
        in row["part"]
    )
    alone = larger_embeddings(large, recipe, dataset="glyphs_1k", facts=facts).loc["here"]
    assert alone["verdict"] == "not_run" and "embedding dimension 512" in alone["reason"]


def test_2048_dimensions_are_compared_with_the_512_of_the_paper_s_recipe():
    facts = study_facts(benchmark.study.load_study("roadmap"))
    settings = [
        setting
        for name, setting in facts
        if name == "sop" and "sota" in setting and "resnet50" in setting
    ]
    large = next(each for each in settings if each.endswith("~dim2048"))
    plain = large.removesuffix("~dim2048")
    assert plain in settings and facts["sop", plain]["embedding_dim"] == 512
    row = larger_embeddings((large, 0.55), (plain, 0.5), dataset="sop", facts=facts).loc["here"]
    assert row["verdict"] == "supported" and row["part"].endswith(
        "dim 2048 - roadmap setup=sota dim 512"
    )


def test_two_sides_that_are_the_same_runs_decide_nothing():
    arms = (Arm("fast_ap", ("bins=10", "")),), (Arm("fast_ap"),)
    row = verdicts(on("sop", "r18", fast_ap=0.5), claim((Condition(("sop",)),), *arms)).loc[
        "c", "here"
    ]
    assert (row["verdict"], "same runs" in row["reason"]) == ("not_run", True)


def test_every_protocol_of_a_dataset_is_asked_here():
    tables = [
        long_table({"smooth_ap": 0.5, "roadmap": 0.55}, split=split, dataset="vehicleid")
        for split in "ab"
    ]
    assert verdicts(pd.concat(tables), claim((Condition(("sop",)),))).loc["c", "here"]["parts"] == 2


def test_a_claim_that_is_outside_is_never_decided_as_published_and_says_why():
    condition = (Condition(("cub",), backbone="resnet50", batch_sizes=(64,)),)
    runs = on("cub", "resnet50", (64,), smooth_ap=0.5, roadmap=0.55)
    never = dataclasses.replace(claim(condition), outside="Faces are not to be had")
    found = verdicts(runs, never)
    published, here = (found.loc["c", reading] for reading in ("published", "here"))
    assert (published["verdict"], published["reason"]) == ("not_run", "Faces are not to be had")
    assert here["verdict"] == "supported"
    text = summary_text(found.reset_index())
    assert "outside      c: Faces are not to be had" in text and text.count("Faces") == 1

    study = made_up_study(references=References(("roadmap2021v2/table1",), None))
    shown = build(pd.DataFrame(), {"claims": found.reset_index()}, study)
    assert "not run as published: Faces are not to be had" in shown.sections[0].rows[0][-1].text
    note = "No run of the suite can decide 1 claim of its papers as published. Faces are not to be had."
    assert note in shown.notes
    elsewhere = build(pd.DataFrame(), {"claims": found.reset_index()}, made_up_study())
    assert note not in elsewhere.notes


def test_no_runs_at_all_leave_everything_not_run():
    found, parts = judge_claims(long_table({"smooth_ap": 0.5}).iloc[:0], load_claims(), {})
    assert set(found["verdict"]) == {"not_run"}
    assert list(found) == COLUMNS and list(parts) == PART_COLUMNS
    assert not found["reason"].eq("").any()


@pytest.fixture(scope="module")
def made_up():
    study = made_up_study()
    return study, judge_claims(made_up_runs(study), load_claims(), {})


def test_a_study_on_stand_in_data_decides_claims_here_alone(made_up):
    table = made_up[1][0]
    words = table.groupby("reading")["verdict"].value_counts()
    assert words["published"].to_dict() == {"not_run": len(load_claims())}
    assert words["here"]["supported"] >= 3
    sup_ap = table.set_index(["claim", "reading"]).loc["sup_ap_beats_smooth_ap", "here"]
    assert sup_ap["verdict"] == "supported" and sup_ap["p"] <= sup_ap["alpha"]


def test_the_deciding_part_is_one_of_the_parts(made_up):
    table, parts = made_up[1]
    keys = set(parts[["claim", "reading", "part"]].itertuples(index=False, name=None))
    decided = table[table["part"].notna()]
    assert set(decided[["claim", "reading", "part"]].itertuples(index=False, name=None)) <= keys
    assert len(parts) == table["parts"].sum()


def test_the_table_shows_both_readings_and_counts_what_cannot_be_tested(made_up):
    study, (table, _) = made_up
    table = table.copy()
    first = table[
        (table["reading"] == "published") & (table["claim"] == "calibration_adds_to_sup_ap")
    ].index[0]
    table.loc[first, "verdict"] = "inconclusive"
    shown = build(pd.DataFrame(), {"claims": table}, study)
    headers = {column.header[0] for column in shown.columns}
    assert {"As published", "Does it hold here?"} <= headers
    tested = table[table["verdict"] != "not_run"]["claim"].nunique()
    assert shown.rows == tested
    assert shown.notes == [
        f"{len(load_claims()) - tested} further claims cannot be tested with the runs of this study."
    ]
    row = next(
        row
        for section in shown.sections
        for row in section.rows
        if "SupAP is better than" in row[0].text
    )
    assert [row[2].text, row[6].text] == ["not run", "supported"]


def test_the_table_has_one_reading_where_nothing_was_run_as_published(made_up):
    study, (table, _) = made_up
    assert (table[table["reading"] == "published"]["verdict"] == "not_run").all()
    shown = build(pd.DataFrame(), {"claims": table}, study)
    assert "As published" not in {column.header[0] for column in shown.columns}
    assert "nothing here is tested as published" in shown.notes[0]
    row = next(
        row
        for section in shown.sections
        for row in section.rows
        if "SupAP is better than" in row[0].text
    )
    assert row[2].text == "supported" and [line.text for line in row[0].lines] == [
        "sup_ap_beats_smooth_ap"
    ]
    assert "What the paper says,What the paper says name,Its condition" in to_csv(shown)
    assert "explain NAME --study made_up" in shown.caption


def test_the_table_says_when_there_is_nothing_to_show(made_up):
    study, (table, _) = made_up
    with pytest.raises(NothingToShow, match="claims made_up"):
        build(pd.DataFrame(), {}, study)
    with pytest.raises(NothingToShow, match="bears on"):
        build(pd.DataFrame(), {"claims": table.assign(verdict="not_run")}, study)


def test_the_summary_counts_both_readings_and_gives_reasons(made_up):
    text = summary_text(made_up[1][0])
    assert "published (" in text and "here (" in text
    assert "supported    sup_ap_beats_smooth_ap: " in text


def test_the_verb_writes_both_tables(tmp_path, monkeypatch, made_up):
    study = made_up[0]
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: study)
    (tmp_path / "made_up").mkdir()
    write_long(made_up_runs(study), tmp_path / "made_up")
    done = CliRunner().invoke(app, ["claims", "made_up", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "made_up" / "claims.csv")
    parts = pd.read_csv(tmp_path / "made_up" / "claims_parts.csv")
    assert (list(table), list(parts)) == (COLUMNS, PART_COLUMNS)
    assert np.isfinite(table.loc[table["verdict"] == "supported", "p"]).all()


def test_a_misspelt_claim_and_a_study_without_references_are_explained(
    tmp_path, monkeypatch, made_up
):
    study = made_up[0]
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: study)
    (tmp_path / "made_up").mkdir()
    write_long(made_up_runs(study), tmp_path / "made_up")
    done = CliRunner().invoke(app, ["explain", "sup_ap_beats_smoothap", "--results", str(tmp_path)])
    assert isinstance(done.exception, ConfigError) and "near: sup_ap_beats_smooth_ap" in str(
        done.exception
    )
    with pytest.raises(ConfigError, match="names no references"):
        find_verdicts(pd.DataFrame(), "glyphs_1k/sup_ap")


def test_the_verb_lists_claims_and_asks_for_a_study_otherwise():
    listed = CliRunner().invoke(app, ["claims", "--list"])
    assert listed.exit_code == 0 and "roadmap_beats_ap_losses " in listed.output
    assert CliRunner().invoke(app, ["claims"]).exit_code == 2


def test_the_verb_needs_a_collected_study(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: made_up_study())
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
    condition = (
        Condition(("sfm120k",), protocol="roxford5k_medium", backbone="r101", batch_sizes=(32,)),
    )
    first, second = (Arm("softbin_ap", ("expansion=aqe",)),), (Arm("softbin_ap"),)
    found = verdicts(runs, claim(condition, first, second))
    assert list(found["verdict"]) == ["supported", "supported"] and list(found["parts"]) == [1, 1]
    turned = verdicts(runs, claim(condition, second, first))
    assert list(turned["verdict"]) == ["contradicted", "contradicted"]
