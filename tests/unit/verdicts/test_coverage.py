"""Which published numbers have a run: counted, never fewer than before, and each number once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made_up_records import made_up_result
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.records import RESULT
from benchmark.published.loading import load_papers
from benchmark.published.vocabulary import load_vocabulary
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts.coverage import (
    FINISHED,
    MISSING,
    OUTSIDE,
    PLANNED,
    as_text,
    counts,
    coverage,
)

STUDIES = ("roadmap", "smooth_ap", "fast_ap", "listwise")
COVERED_ONCE = 520  # raise it when a study covers more; it must not fall


@pytest.fixture(scope="module")
def studies():
    return [load_study(name) for name in STUDIES]


@pytest.fixture(scope="module")
def table(studies, tmp_path_factory):
    return coverage(studies, tmp_path_factory.mktemp("results"))


def test_every_countable_number_is_covered_or_outside_and_coverage_does_not_fall(table):
    states = table["state"].value_counts()
    assert len(table) == len(load_papers().countable()) == states.sum()
    assert states.get(MISSING, 0) == 0
    assert states[PLANNED] >= COVERED_ONCE
    assert states[PLANNED] + states[OUTSIDE] == len(table)


def test_what_is_outside_are_counts_of_the_authors_code(table):
    rows = table[table["state"] == OUTSIDE]
    assert set(rows["paper"]) == {"listwise2019"}
    assert len(rows) == 8
    assert rows["reason"].str.contains("no run has it").all()
    assert set(rows["metric"]) == {"n_hyperparameters", "extra_lines_of_code"}


def test_each_row_of_mined_triplets_has_runs_of_its_own(table):
    rows = table[table["row_label"].str.contains("TL-") & (table["state"] == PLANNED)]
    runs = rows.groupby("row_label")["run"].agg(set)
    assert len(rows) == 24
    assert {label: runs[label] for label in runs.index} == {
        f"GeM (TL-{size}) [ours]": {f"landmarks_clean/{setting}/triplet_mined/bs{size}"}
        for size, setting in (
            (64, "resnet101_listwise_triplets"),
            (512, "resnet101_listwise_triplets~batch512"),
            (1024, "resnet101_listwise_triplets~batch1024"),
        )
    }


def test_the_counts_of_the_triplet_rows_follow_from_their_recipes(studies):
    """Passes and updates of table 1: 3 images a triplet, and the pool of each epoch."""
    study = next(each for each in studies if each.name == "listwise")
    printed = {  # triplets: thousand backward, thousand forward, updates
        64: (1572, 2213, 8192),
        512: (2359, 3319, 1536),
        1024: (3146, 4426, 1024),
    }
    for block in study.blocks:
        if block.recipe.sampler.name != "mined_triplets":
            continue
        size = block.batch_sizes[0]
        sampler = block.recipe.sampler.params
        epochs = block.recipe.training.epochs
        backward = 3 * epochs * sampler["triplets"]
        forward = backward + epochs * sampler["pool"]
        updates = epochs * sampler["triplets"] // size
        thousand = (backward / 1000, forward / 1000, updates)  # of which the print cuts or rounds
        assert thousand == pytest.approx(printed[size], abs=1.0)
        printed.pop(size)
    assert not printed


def test_faces_are_told_apart_by_network_loss_and_the_sizes_of_table_5(table):
    rows = table[table["dataset"].isin(["vggface2", "ijbc"])]
    assert len(rows) == 30
    assert set(rows["state"]) == {PLANNED}
    both = rows.groupby(["table", "row_label", "run"])["dataset"].nunique()
    assert (both == 2).all(), "the same run is evaluated on both sets of faces"
    networks = {run.split("/")[1] for run in rows[rows["table"] == "table4"]["run"]}
    assert networks == {"senet50_smooth_ap", "arcface_resnet50_smooth_ap"}
    runs = dict(zip(rows["row_label"], rows["run"], strict=True))
    base = "vggface2/senet50_smooth_ap"
    assert runs["4"] == runs["0.01"] == runs["128"] == f"{base}/smooth_ap/bs128"
    assert runs["0.1"] == f"{base}/smooth_ap_tau_0.1/bs128"
    assert runs["16"] == f"{base}~p16/smooth_ap/bs128"
    assert runs["64"] == f"{base}/smooth_ap/bs64"


def test_landmarks_clean_and_its_distractors_have_one_run(table):
    rows = table[(table["paper"] == "listwise2019") & (table["state"] == PLANNED)]
    rows = rows[~rows["row_label"].str.contains("TL-")]
    assert len(rows) == 24
    assert set(rows["dataset"]) == {
        "landmarks_clean",
        "roxford5k",
        "rparis6k",
        "roxford_1m",
        "rparis_1m",
    }
    assert set(rows["run"]) == {"landmarks_clean/resnet101_listwise/softbin_ap/bs4096"}


@pytest.mark.parametrize(
    ("facts", "run"),
    [
        (("roadmap2021v2", "table2", "XBM", "sop"), "sop/resnet50~xbm/cosine_contrastive/bs64"),
        (
            ("roadmap2021v2", "table9", "ROADMAP (ours)", "roxford5k"),
            "sfm120k/deit_s/roadmap/bs128",
        ),
        (
            ("smoothap2020", "tableS1", "FastAP", "sop"),
            "sop/resnet50_smooth_ap~timing/fast_ap/bs112",
        ),
        (("fastap2019", "table6", "GoogLeNet", "inshop"), "inshop/googlenet_fast_ap/fast_ap/bs320"),
    ],
)
def test_rows_belong_to_the_runs_that_a_reader_would_choose(table, facts, run):
    rows = table[(table[["paper", "table", "row_label", "dataset"]] == list(facts)).all(axis=1)]
    assert set(rows["run"]) == {run}


def test_both_samplings_and_all_widths_of_fast_ap_are_told_apart(table):
    rows = table[table["paper"] == "fastap2019"].groupby("table")["run"].unique()
    assert any("~random" in run for run in rows["table5"])
    assert any("~" not in run for run in rows["table5"])
    assert "sop/resnet50_fast_ap~dim128/fast_ap/bs96" in rows["table1"]


def test_numbers_that_are_no_scores_say_how_they_are_measured(table):
    times = table[(table["metric"] == "minutes_per_epoch") & (table["state"] == PLANNED)]
    assert len(times) == 4
    assert times["reason"].str.contains("no score: measured by timing").all()


def test_a_finished_run_finishes_its_numbers_and_no_others(studies, tmp_path):
    fast_ap = studies[2]
    run = expand(fast_ap)["sop/resnet18_fast_ap/fast_ap/bs256/seed1"]
    made_up_result(run.spec).write(tmp_path / run.spec.folder / RESULT)
    found = coverage([fast_ap], tmp_path)
    assert set(found[found["state"] == FINISHED]["run"]) == {run.spec.cell.label}


def test_the_decrease_of_the_gap_is_finished_by_its_analysis_and_not_by_a_run(studies, tmp_path):
    study = with_blocks(studies[0], {"table1"})
    folder = tmp_path / "roadmap" / "analyses" / "decomposability_gap-sop"
    folder.mkdir(parents=True)
    summary = {"schema": 1, "quick": False, "runs": [{"run_id": "sop/resnet50/sup_ap/bs64/seed0"}]}
    (folder / "summary.json").write_text(json.dumps(summary))
    lines = [
        "trained_at,loss,seed,measured_at,gap,kind",
        "64,sup_ap,0,64,0.2,gap",
        "64,roadmap,0,64,0.1,gap",
    ]
    (folder / "figure.csv").write_text("\n".join([*lines, ""]))
    found = coverage([study], tmp_path)
    done = found[found["state"] == FINISHED]
    assert done[["table", "dataset", "metric"]].values.tolist() == [
        ["table10", "sop", "gap_decrease"]
    ]
    (folder / "summary.json").write_text(json.dumps({**summary, "study": "another"}))
    assert not (coverage([study], tmp_path)["state"] == FINISHED).any()


def test_every_number_that_is_no_score_is_measured_and_not_judged(table):
    planned = table[table["state"] == PLANNED]
    measured = planned[planned["reason"] != ""]
    assert len(measured) == 28
    assert (planned["judged"] == (planned["reason"] == "")).all()
    kinds = load_vocabulary().kinds
    names = ("times", "step_times", "counts", "gaps")
    assert set(measured["metric"]) == {each for name in names for each in kinds[name].metrics}


def with_blocks(study, names):
    """Return a study with some of its blocks: few runs are matched in a moment."""
    return replace(study, blocks=tuple(each for each in study.blocks if each.name in names))


def test_a_study_without_its_block_leaves_its_numbers_missing_with_a_reason(studies, tmp_path):
    of_paper = with_blocks(studies[0], {"table1", "table3"})
    found = coverage([of_paper], tmp_path)
    missing = found[(found["state"] == MISSING) & (found["reason"] != "there is no study")]
    xbm = missing[(missing["table"] == "table2") & (missing["row_label"] == "XBM")]
    assert len(xbm) == 6
    assert xbm["reason"].str.contains("no run of cosine_contrastive").any()
    assert f"missing: {len(missing)} numbers" in as_text(found.loc[missing.index])


def test_sums_by_table_are_those_of_the_rows(table):
    found = counts(table)
    assert found["numbers"].sum() == len(table)
    assert (found["numbers"] == found[[FINISHED, PLANNED, OUTSIDE, MISSING]].sum(axis=1)).all()


def test_tables_are_listed_in_the_order_of_the_print(table):
    found = counts(table)
    roadmap = found[found["paper"] == "roadmap2021v2"]["table"].tolist()
    assert roadmap == [f"table{number}" for number in range(1, 11)]
    assert found[found["paper"] == "smoothap2020"]["table"].iloc[-1] == "tableS1"


def test_the_verb_prints_the_table_and_the_reasons(table, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark.verdicts.coverage.coverage", lambda studies, results: table)
    done = CliRunner().invoke(app, ["coverage", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "no run has it" in done.output
    assert "hyperparameters" in done.output
    assert done.output.splitlines()[0].split() == [
        "paper",
        "table",
        "numbers",
        "in",
        "a",
        "study",
        "finished",
        "outside",
        "missing",
    ]


def test_numbers_on_assumptions_are_told_from_faithful_ones(table):
    faces = table[table["dataset"].isin(["vggface2", "ijbc"])]
    assert len(faces) == 30
    assert (faces["assumed"] != "").all()
    assert (table[table["table"] == "table6"].query("paper == 'roadmap2021v2'").assumed == "").all()
    judged = table[(table["state"] == PLANNED) & table["judged"]]
    rests = (judged["assumed"] != "").sum()
    words = f"{len(judged) - rests} numbers are faithful, {rests} rest on a stated"
    assert words in as_text(table)
    assert "28 are measured and not judged" in as_text(table)
    assert "8 are outside; of the 37 printed in figures and text 17 are judged" in as_text(table)


def test_what_paper_and_its_own_code_leave_open_is_not_faithful(table):
    """Rows whose acting values another program, or nobody, states."""
    roadmap = table[table["paper"] == "roadmap2021v2"]
    xbm = roadmap[(roadmap["table"] == "table2") & roadmap["row_label"].str.contains("XBM")]
    wide = roadmap[(roadmap["table"] == "table8") & roadmap["run"].str.contains("dim2048")]
    landmarks = roadmap[roadmap["table"] == "table9"]
    triplets = table[(table["paper"] == "smoothap2020") & table["run"].str.contains("roth")]
    assert (len(xbm), len(wide), len(landmarks), len(triplets)) == (6, 6, 4, 8)
    vehicles = table[(table["paper"] == "smoothap2020") & (table["dataset"] == "vehicleid")]
    assert len(vehicles) == 6
    for rows, word in (
        (xbm, "code_of_training (unknown)"),
        (wide, "head (unknown)"),
        (landmarks, "offset (0.3 to 1)"),
        (triplets, "model.embedding_dim (unknown)"),
        (vehicles, "schedule.milestones (unknown)"),
    ):
        assert rows["assumed"].str.contains(word, regex=False).all(), word


def test_a_row_whose_batch_size_is_a_reading_is_not_faithful_though_others_of_its_runs_are(table):
    roadmap = table[table["paper"] == "roadmap2021v2"]
    read = roadmap[roadmap["table"].isin(["table4", "table8"])]
    read = read[read["dataset"].isin(["cub", "sop"])]
    assert len(read) == 22
    assert read["assumed"].str.count("batch_size").eq(1).all()
    of_both = roadmap[roadmap["table"] == "table5"].merge(read[read["table"] == "table4"], on="run")
    assert (of_both["assumed_x"] == "").all()
    assert len(of_both), "DeiT-S: runs of table 5, whose batch size is printed"
