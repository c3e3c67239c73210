"""Verdicts on made-up studies: every outcome with its printed reason, what few runs make hard, the
epochs of papers, and several looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_up_results import grid_of, long_table, run_table, without_number

from benchmark.published.loading import load_papers
from benchmark.published.vocabulary import margin_of
from benchmark.stats.planning import pocock
from benchmark.stats.samples import Samples
from benchmark.study import load_study
from benchmark.verdicts import judging
from benchmark.verdicts.explain import drifted_messages, explain, fails, summary_text
from benchmark.verdicts.frozen import freeze, load_frozen
from benchmark.verdicts.judging import judge_study, pairs_of_frozen, pairs_of_numbers, rule_of
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.verdicts import VERDICT, Reason, by_source

# five runs with their spread, ResNet-50 and DeiT-S at batch size 128
TABLE = "roadmap2021v2/table5"


def cub(means, **options):
    options = {
        "dataset": "cub",
        "setting": "resnet50",
        "batch_sizes": (128,),
        "metrics": ("recall_at_1",),
    } | options
    return long_table(means, **options)


def judged(runs, published=(TABLE,), frozen=None, selection="last"):
    samples = Samples(run_table(runs), selection)
    sides = pairs_of_numbers(load_papers().asked(published), samples, grid_of(runs).candidates)
    return judging.judged(sides + pairs_of_frozen(frozen or {}, samples))


def reseeded(runs, change):
    """Return the runs with other seeds, and so with other names."""
    seeds = runs["seed"].map(change)
    names = runs["run_id"].str.rpartition("seed")[0] + "seed" + seeds.astype(str)
    return runs.assign(seed=seeds, run_id=names)


def row(table, metric="recall_at_1"):
    """Return the verdict on Fast-AP's number on CUB."""
    return table.query(
        "dataset == 'cub' and loss == 'fast_ap' and metric == @metric and backbone == 'resnet50'"
    ).iloc[0]


def row_at(mean, **options):
    """Return the verdict on Fast-AP's number on CUB, of runs around a mean."""
    return row(judged(cub({"fast_ap": mean}, **options)))


@pytest.fixture
def frozen_of(tmp_path):
    def make(runs):
        freeze(run_table(runs), tmp_path / "frozen.csv")
        return load_frozen(tmp_path / "frozen.csv")

    return make


def test_runs_around_the_printed_value_reproduce_it():
    found = row_at(0.6128)
    assert found["verdict"] == "reproduced"
    assert found["reason"].startswith("[")
    assert found["reference_mean"] == 61.28
    assert found["reference_sd"] == 0.37
    assert found["reference_n"] == 5
    assert found["ours_n"] == 5
    assert found["df"] == 4
    assert found["margin"] == 1.0


@pytest.mark.parametrize(("score", "direction"), [(0.55, "low"), (0.67, "high")])
def test_runs_far_from_the_printed_value_drift_in_their_direction(score, direction):
    found = row_at(score)
    assert found["verdict"] == "drifted"
    assert found["direction"] == direction


def test_noisy_runs_are_inconclusive_with_the_number_of_seeds_that_would_decide():
    found = row_at(0.615, sd=0.02, seeds=3)
    assert found["verdict"] == "inconclusive"
    assert found["seeds_to_decide"] > 3 or "no number of seeds" in found["reason"]


def test_every_reference_has_a_row_and_what_was_not_run_says_why():
    table = judged(cub({"fast_ap": 0.6128}))
    assert len(table) == 60
    assert list(table.columns) == list(VERDICT)
    others = table[table["dataset"] == "sop"]
    assert set(others["verdict"]) == {"not_run"}
    assert set(others["reason"]) == {"no run on sop"}
    assert others["ours_mean"].isna().all()
    assert others["reference_mean"].notna().all()


def test_an_empty_study_leaves_everything_not_run():
    table = judged(cub({"fast_ap": 0.6128}).iloc[:0])
    assert set(table["verdict"]) == {"not_run"}
    assert table["p_holm"].isna().all()


def test_holm_counts_the_tested_numbers_of_the_table():
    table = judged(cub({"fast_ap": 0.6128, "roadmap": 0.63}))
    tested = table[table["p_drift"].notna()]
    assert len(tested) == 2
    assert set(tested["family_size"]) == {2}
    smallest = tested["p_drift"].min()
    assert tested["p_holm"].min() == pytest.approx(min(2 * smallest, 1.0))


def test_one_run_is_judged_by_the_printed_spread():
    found = row_at(0.6128, seeds=1)
    # Four degrees of freedom of its own, and a quarter of those of the four losses beside it.
    assert found["df"] == 8
    assert found["verdict"] in ("reproduced", "inconclusive")


def test_one_run_against_one_value_is_inconclusive_and_says_what_to_do():
    runs = cub({"fast_ap": 0.6}, seeds=1, batch_sizes=(64,))
    found = row(judged(runs, ["roadmap2021v2/table1"]))
    assert found["ours_n"] == 1
    assert found["why"] == Reason.ONE_RUN


def test_one_run_borrows_the_spread_of_its_sister_cells():
    runs = cub({"fast_ap": 0.6, "roadmap": 0.64}, batch_sizes=(64,))
    runs = runs.query("loss == 'roadmap' or seed == 0")
    found = row(judged(runs, ["roadmap2021v2/table1"]))
    # A quarter of the four degrees of freedom of its only sister.
    assert found["ours_n"] == 1
    assert found["df"] == 1
    assert np.isfinite(found["p_drift"])


def test_diverged_runs_are_left_out_and_named():
    runs = without_number(cub({"fast_ap": 0.6128}), "seed == 1", "diverged")
    found = row(judged(runs))
    assert found["ours_n"] == 4
    assert found["n_diverged"] == 1
    assert "1 of 5 runs diverged and are left out" in found["reason"]


def test_runs_that_no_longer_diverge_as_the_frozen_ones_did_have_drifted(frozen_of):
    runs = cub({"fast_ap": 0.6})
    frozen = frozen_of(without_number(runs, "seed >= 0", "diverged"))
    found = judged(runs, (), frozen).iloc[0]
    assert found["verdict"] == "drifted"
    assert found["direction"] == "high"
    assert found["reason"] == "0 of 5 runs of ours diverged, all 5 runs of the frozen ones"


def test_frozen_runs_that_diverged_in_part_are_named(frozen_of):
    runs = cub({"fast_ap": 0.6})
    frozen = frozen_of(without_number(runs, "seed == 1", "diverged"))
    found = judged(runs, (), frozen).iloc[0]
    assert "of the frozen runs 1 of 5 runs diverged and are left out" in found["reason"]


@pytest.mark.parametrize(
    ("seeds", "status", "why", "said"),
    [
        (5, "diverged", Reason.OURS_DIVERGE, "all 5 runs of ours diverged"),
        (1, "diverged", Reason.TOO_FEW, "the only run diverged: too few to tell"),
        (5, "missing", Reason.NOT_FINISHED, "no finished run (5 missing)"),
    ],
)
def test_a_cell_without_scores_has_a_reason_with_its_word(seeds, status, why, said):
    runs = without_number(cub({"fast_ap": 0.6}, seeds=seeds), "seed >= 0", status)
    found = row(judged(runs))
    assert found["why"] == why
    assert found["reason"] == said
    assert found["verdict"] == why.word
    assert found["direction"] == why.direction


def test_a_metric_that_the_runs_lack_is_not_run():
    found = row(judged(cub({"fast_ap": 0.6})), metric="map_at_r")
    assert found["why"] == Reason.NO_METRIC
    assert found["verdict"] == "not_run"
    assert found["reason"] == "the runs have no map_at_r on split test"


def test_costs_and_other_numbers_that_are_no_scores_are_not_judged():
    table = judged(cub({"fast_ap": 0.6}), ["listwise2019/table1"])
    costs = table[table["published_unit"] == "days"]
    assert len(costs)
    assert set(costs["reason"]) == {"not a retrieval score of a whole test set: not judged"}


def test_the_best_epoch_is_judged_apart_and_labelled():
    found = row(judged(cub({"fast_ap": 0.6128}, sd=0.001), selection="best"))
    assert found["selection"] == "best"
    assert found["difference"] == pytest.approx(1.0, abs=0.2)


def test_unchanged_runs_reproduce_their_frozen_reference(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6})
    table = judged(runs, (), frozen_of(runs))
    assert len(table) == 4
    assert set(table["verdict"]) == {"reproduced"}
    assert (table["difference"] == 0).all()
    assert set(table["family_size"]) == {4}
    assert table["reason"].str.contains("identical under 5 common seeds").all()


def test_frozen_runs_are_paired_by_seed(frozen_of):
    # a spread that would decide nothing without pairing
    runs = long_table({"smooth_ap": 0.5}, sd=0.05)
    moved = runs.assign(value=runs["value"] + 0.02 + 1e-4 * (runs["seed"] % 3))
    table = judged(moved, (), frozen_of(runs))
    assert set(table["verdict"]) == {"drifted"}
    assert table["reason"].str.contains("paired by 5 seeds").all()
    is_judged = runs.eval("metric == 'map_at_r' and selection == 'last'")
    differences = (100 * (moved["value"] - runs["value"]))[is_judged]
    found = table[table["metric"] == "map_at_r"].iloc[0]
    assert found["se"] == pytest.approx(differences.std(ddof=1) / np.sqrt(5))
    assert found["df"] == 4


def test_other_seeds_than_the_frozen_are_compared_without_pairs(frozen_of):
    runs = long_table({"smooth_ap": 0.5}, sd=0.05)
    table = judged(reseeded(runs, lambda seed: seed + 10), (), frozen_of(runs))
    assert (table["difference"] == 0).all()
    assert set(table["verdict"]) == {"inconclusive"}


def test_equal_means_do_not_hide_a_spread_wider_than_the_margin(frozen_of):
    runs = long_table({"smooth_ap": 0.5}, sd=0.05)
    table = judged(reseeded(runs, lambda seed: 4 - seed), (), frozen_of(runs))
    assert np.allclose(table["difference"], 0)
    assert set(table["verdict"]) == {"inconclusive"}


def test_a_planted_change_drifts_from_the_frozen_runs_and_nothing_else_does(frozen_of):
    frozen = frozen_of(long_table({"smooth_ap": 0.5, "sup_ap": 0.6}))
    table = judged(long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, seed=1), (), frozen)
    by_loss = table.groupby("loss")["verdict"].unique()
    assert by_loss["sup_ap"].tolist() == ["drifted"]
    assert by_loss["smooth_ap"].tolist() == ["reproduced"]


def test_identical_runs_without_any_spread_are_reproduced_and_others_are_not_judged(frozen_of):
    frozen = frozen_of(long_table({"smooth_ap": 0.9}, sd=0.0))
    same = judged(long_table({"smooth_ap": 0.9}, sd=0.0), (), frozen)
    assert set(same["verdict"]) == {"reproduced"}
    other = judged(long_table({"smooth_ap": 0.8}, sd=0.0), (), frozen)
    assert set(other["why"]) == {Reason.NO_SPREAD}


def test_changed_versions_are_named_beside_a_frozen_verdict(frozen_of):
    runs = long_table({"smooth_ap": 0.5})
    table = judged(runs.assign(spec_digest="e", platform="gpu"), (), frozen_of(runs))
    assert table["reason"].str.contains("specification differs; platform differs").all()
    assert not table["reason"].str.contains("cause").any(), "of scores that are the same"
    drifted = runs.assign(spec_digest="e", platform="gpu", value=runs["value"] - 0.2)
    reasons = judged(drifted, (), frozen_of(runs))["reason"]
    assert reasons.str.endswith("; any of these may be the cause").all()


def test_frozen_cells_that_the_study_no_longer_has_are_not_run(frozen_of):
    frozen = frozen_of(long_table({"smooth_ap": 0.5, "sup_ap": 0.6}))
    table = judged(long_table({"smooth_ap": 0.5}), (), frozen)
    gone = table[table["loss"] == "sup_ap"]
    assert set(gone["verdict"]) == {"not_run"}


def test_a_drift_message_names_cell_values_counts_and_rule():
    (message,) = drifted_messages(judged(cub({"fast_ap": 0.55})))
    for part in (
        "cub/resnet50/fast_ap/bs128",
        "recall_at_1",
        "61.28 (sd 0.37, n 5)",
        "n 5)",
        "±1 points",
        "Holm p",
    ):
        assert part in message, message
    assert "roadmap2021v2 table5" in message
    assert "drifted low" in message


def test_the_summary_counts_verdicts_and_states_the_rule():
    text = summary_text(judged(cub({"fast_ap": 0.55})))
    assert "Scores of papers: 1 of 60 run" in text
    assert "59 not_run" in text
    assert "1 drifted" in text
    assert "frozen runs" not in text
    assert "rule: reproduced: 90% interval" in text
    assert "drifted: cub/" in text
    assert "names no printed numbers" in summary_text(typed({}, VERDICT))


def test_our_own_frozen_runs_have_words_and_counts_of_their_own(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, sd=0.02, metrics=("recall_at_1",))
    differing = runs["value"] + 1e-4 * runs["seed"]
    moved = runs["value"].mask(runs["loss"] == "sup_ap", differing)
    table = judged(runs.assign(value=moved), frozen=frozen_of(runs))
    (papers, published, _), (ours, frozen, _) = by_source(table)
    assert papers == "Scores of papers: 0 of 60 run"
    assert "Our own frozen runs" in ours
    assert set(published) == {"not_run"}
    assert sorted(frozen) == ["agree", "identical"]


def two_seeds(values):
    """Return runs whose R@1 are given by seed."""
    runs = long_table({"smooth_ap": 0.5}, seeds=2, metrics=("recall_at_1",))
    return runs.assign(value=np.take(values, runs["seed"]))


def test_differences_that_happen_to_be_equal_are_no_exact_value(frozen_of):
    frozen = frozen_of(two_seeds([0.700, 0.710]))
    found = judged(two_seeds([0.685, 0.695]), (), frozen).iloc[0]
    assert found["difference"] == pytest.approx(-1.5)
    assert found["paired_n"] == 2
    assert found["verdict"] != "drifted"


def test_one_score_more_or_less_than_frozen_is_paired_over_the_common_seeds(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, sd=0.05, seeds=6)
    now = runs.assign(value=runs["value"] + 1e-5 * (runs["seed"] % 3))
    frozen = frozen_of(runs[runs["seed"] > 0])
    for seeds, common in ((5, 4), (6, 5)):
        table = judged(now[now["seed"] < seeds], (), frozen)
        assert set(table["verdict"]) == {"reproduced"}
        assert set(table["paired_n"]) == {common}


def test_divergence_against_frozen_runs_is_an_outcome(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, metrics=("recall_at_1",))
    four = without_number(runs, "loss == 'sup_ap' and seed > 0", "diverged")
    lost = judged(four, (), frozen_of(runs)).set_index("loss").loc["sup_ap"]
    assert lost["verdict"] == "drifted"
    assert lost["direction"] == "low"
    assert lost["reason"] == "4 of 5 runs of ours diverged, 0 of 5 runs of the frozen ones"
    won = judged(runs, (), frozen_of(four)).set_index("loss").loc["sup_ap"]
    assert won["verdict"] == "drifted"
    assert won["direction"] == "high"


def test_a_frozen_cell_without_any_score_has_a_row(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, metrics=("recall_at_1",))
    none = without_number(runs, "loss == 'sup_ap'", "diverged")
    frozen = frozen_of(none)
    for now, verdict in ((none, "reproduced"), (runs, "drifted")):
        found = judged(now, (), frozen).set_index("loss").loc["sup_ap"]
        assert found["verdict"] == verdict


def test_the_family_is_that_of_the_plan_so_that_no_result_is_lost_later():
    means = {"fast_ap": 0.6128, "roadmap": 0.63}
    early = row(judged(without_number(cub(means), "loss == 'roadmap'", "missing")))
    late = row(judged(cub(means)))
    assert early["family_size"] == 2
    assert early["p_holm"] >= late["p_holm"]


def test_reasons_say_where_the_interval_lies():
    beyond = row(judged(cub({"fast_ap": 0.594, "roadmap": 0.6418}, sd=0.006, seeds=3)))
    wide = row_at(0.605, sd=0.02, seeds=3)
    edge = row_at(0.63, sd=0.02, seeds=3)
    assert beyond["why"] == Reason.BEYOND_ALONE
    assert beyond["ci_high"] < -beyond["margin"]
    assert wide["why"] == Reason.TOO_WIDE
    assert wide["ci_low"] < -wide["margin"]
    assert wide["ci_high"] > wide["margin"]
    assert edge["why"] == Reason.ON_THE_EDGE
    assert edge["ci_low"] < edge["margin"]
    assert edge["ci_high"] > edge["margin"]


def test_finished_runs_without_a_finite_score_are_named():
    runs = cub({"fast_ap": 0.6128})
    runs.loc[runs["seed"] == 2, "value"] = np.nan
    found = row(judged(runs))
    assert "1 of the finished runs without a finite score" in found["reason"]


@pytest.mark.parametrize(
    ("metric", "score", "margin"),
    [
        ("recall_at_1", 62, 1.0),
        ("recall_at_1", 84.9, 1.0),
        ("recall_at_1", 85, 0.7),
        ("recall_at_1", 98, 0.4),
        ("map_at_r", 98, 0.5),
        ("ndcg", 5, np.nan),
    ],
)
def test_the_margin_is_that_of_the_metric_and_of_the_references_height(metric, score, margin):
    assert margin_of(metric, score) == pytest.approx(margin, nan_ok=True)


def test_a_verdict_has_the_margin_of_its_metric():
    table = judged(cub({"fast_ap": 0.6128}))
    assert row(table, "map_at_r")["margin"] == 0.5
    assert row(table, "recall_at_1")["margin"] == 1.0


def test_cells_share_their_spread_and_the_plain_test_stays_beside():
    losses = {f"loss_{number}": 0.5 for number in range(12)}
    samples = Samples(run_table(long_table(losses, seeds=3)))
    cell = next(iter(samples.statuses))
    found = samples.sample(cell, "test", "recall_at_1").spread
    assert found.own_df == 2
    assert found.lent_df == 4
    assert found.df == 6
    mean_variance = (4 * found.lent**2 + 2 * found.own**2) / 6
    assert found.sd**2 == pytest.approx(mean_variance)
    without_scores = samples.sample(cell, "test", "map")
    assert without_scores.spread.df == 0


def test_a_verdict_that_an_assumption_turns_is_marked():
    table = judged(cub({"fast_ap": 0.6128, "roadmap": 0.6418}, seeds=3, sd=0.004))
    is_tested = table["p_drift"].notna()
    tested = table[is_tested]
    assert tested["stands"].isin([True, False]).all()
    turned = tested["changes_under"] != ""
    assert (turned != tested["stands"]).all()
    assert table.loc[~is_tested, "stands"].isna().all()


@pytest.mark.parametrize(
    ("source", "rule", "other", "lead"),
    [
        ("roadmap2021v2", "one_best", "last", "rparis6k_hard"),
        ("fastap2019", "last", "best", ""),
        ("smoothap2020", "best_recall_at_1", "last", ""),
        ("listwise2019", "last", "best", ""),
        ("this suite, study sweeps", "last", "best", ""),
    ],
)
def test_each_paper_has_its_rule_and_another_reading(source, rule, other, lead):
    papers = load_papers()
    assert rule_of(papers, source) == (rule, lead)
    assert rule_of(papers, source, "other") == (other, lead)
    assert rule_of(papers, source, "best") == ("best", lead)


def test_a_rule_has_a_source_and_a_paper_without_one_does_not_say():
    stated = {key: paper.about.epoch for key, paper in load_papers().items()}
    assert stated.pop("listwise2019") is None
    assert all(rule.why for rule in stated.values())


def test_verdicts_of_a_study_are_at_the_epoch_of_its_paper():
    study = load_study("roadmap")
    runs = run_table(cub({"roadmap": 0.6, "fast_ap": 0.6}, batch_sizes=(64,)))
    rules = {"paper": "one_best", "other": "last", "last": "last"}
    for selection, table in judge_study(StudyGrid.of(study), runs, rules).items():
        assert set(table["selection"]) == {rules[selection]}


def by_epoch(curves, loss, **cell):
    """Return runs with the scores of each epoch by split and metric; the last ones count, too."""
    tables = []
    for (split, metric), values in curves.items():
        for epoch, value in enumerate(values, 1):
            rows = long_table({loss: value}, sd=1e-4, split=split, metrics=(metric,), **cell)
            last = rows[rows["selection"] == "last"].assign(epoch=epoch)
            tables.append(last.assign(selection="curve"))
        tables.append(last)
    return pd.concat(tables)


def test_each_vehicleid_set_is_judged_at_its_own_best_recall_at_1():
    curves = {
        ("small", "recall_at_1"): (0.949, 0.93, 0.92),
        ("small", "recall_at_5"): (0.976, 0.96, 0.98),
        ("large", "recall_at_1"): (0.9, 0.919, 0.91),
        ("large", "recall_at_5"): (0.97, 0.96, 0.95),
    }
    cell = {"dataset": "vehicleid", "setting": "resnet50_smooth_ap", "batch_sizes": (384,)}
    runs = run_table(by_epoch(curves, "smooth_ap", **cell))
    judged = measured(judge_study(StudyGrid.of(load_study("smooth_ap")), runs, ["paper"])["paper"])
    means = judged.set_index(["split", "metric"])["ours_mean"].to_dict()
    assert means == pytest.approx(
        {
            ("small", "recall_at_1"): 94.9,
            ("small", "recall_at_5"): 97.6,
            ("large", "recall_at_1"): 91.9,
            ("large", "recall_at_5"): 96.0,
        },
        abs=0.05,
    )
    assert set(judged["selection"]) == {"best_recall_at_1"}


def test_the_landmark_sets_of_roadmap_are_judged_at_the_epoch_of_rparis_hard():
    curves = {
        ("rparis6k_hard", "map"): (0.40, 0.42, 0.41),
        ("rparis6k_medium", "map"): (0.69, 0.675, 0.66),
        ("roxford5k_hard", "map"): (0.25, 0.21, 0.22),
    }
    study = load_study("roadmap")
    blocks = {block.name: block for block in study.blocks}
    spec = next(blocks["table9"].specs())
    cell = {"dataset": "sfm120k", "setting": spec.setting.label, "batch_sizes": (128,)}
    runs = run_table(by_epoch(curves, "roadmap", **cell))
    judged = measured(judge_study(StudyGrid.of(study), runs, ["paper"])["paper"])
    means = judged.set_index("split")["ours_mean"].to_dict()
    expected = {"rparis6k_hard": 42.0, "rparis6k_medium": 67.5, "roxford5k_hard": 21.0}
    assert means == pytest.approx(expected, abs=0.05)


LEVEL = pocock((3, 5, 10))


def sides_of(runs):
    numbers = load_papers().asked([TABLE])
    return pairs_of_numbers(numbers, Samples(run_table(runs)), grid_of(runs).candidates)


def verdicts_at(runs, level=0.05):
    return judging.judged(sides_of(runs), level)


def measured(verdicts):
    return verdicts[verdicts["ours_n"] > 0]


def test_a_look_among_several_tests_at_a_stricter_level_with_a_wider_interval():
    runs = cub({"fast_ap": 0.618}, sd=0.002)
    alone = measured(verdicts_at(runs)).iloc[0]
    among = measured(verdicts_at(runs, LEVEL)).iloc[0]
    assert alone["level"] == 0.05
    assert among["level"] == LEVEL
    assert among["ci_low"] < alone["ci_low"]
    assert among["ci_high"] > alone["ci_high"]
    assert among["p_drift"] == alone["p_drift"]


def test_a_stricter_level_finds_fewer_drifts():
    drifts = {0.05: 0, 1e-4: 0}
    for mean in (0.56, 0.57, 0.575, 0.58, 0.585, 0.59, 0.6):
        runs = cub({"fast_ap": mean}, sd=0.004)
        for level in drifts:
            found = row(verdicts_at(runs, level))
            drifts[level] += found["verdict"] == "drifted"
    assert drifts[0.05] > drifts[1e-4]


def test_the_rule_of_a_text_is_that_of_its_level():
    runs = cub({"fast_ap": 0.618}, sd=0.002)
    verdicts = verdicts_at(runs, LEVEL)
    text = summary_text(verdicts)
    assert "95.5% interval" in text
    assert "at 2.25% after Holm" in text
    assert "several looks" in text
    told = explain(verdicts, measured(verdicts).index[0], sides_of(runs), run_table(runs))
    assert "each at 2.25%" in told
    assert "95.5% interval" in told


def test_a_verdict_before_all_seeds_of_the_look_have_ended_says_that_it_is_interim():
    for mean in (0.618, 0.4):
        complete = cub({"fast_ap": mean}, sd=0.001)
        partly = without_number(complete, "seed >= 3", "missing")
        whole = verdicts_at(complete)
        assert not whole["interim"].any()
        assert "interim" not in summary_text(whole)
        interim = verdicts_at(partly)
        (row,) = interim[interim["interim"]].itertuples()
        assert row.reason.startswith("interim, 3 of 5 seeds so far: ")
        assert "interim: 1 of them, whose runs have not all ended" in summary_text(interim)


def test_diverged_runs_have_ended():
    runs = without_number(cub({"fast_ap": 0.618}), "seed == 4", "diverged")
    assert not verdicts_at(runs)["interim"].any()


def test_a_number_without_any_finished_run_is_not_run_and_not_interim():
    runs = without_number(cub({"fast_ap": 0.618}), "seed >= 0", "missing")
    table = verdicts_at(runs)
    assert not table["interim"].any()
    assert set(table["verdict"]) == {"not_run"}


def test_frozen_scores_without_any_difference_are_identical_whatever_other_metrics_do(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, sd=0.02)
    is_map = runs["metric"] == "map_at_r"
    first = runs.index[is_map & (runs["selection"] == "last")][0]
    values = runs["value"].where(is_map, runs["value"] + 0.001 * (runs["seed"] % 2))
    values[first] += 1e-10
    table = judged(runs.assign(value=values), (), frozen_of(runs))
    same = table[table["metric"] == "map_at_r"]
    assert set(same["verdict"]) == {"reproduced"}
    assert same["reason"].str.contains("identical").all()
    moved = table[table["metric"] != "map_at_r"]
    assert moved["reason"].str.contains("paired by 5 seeds").all()


def test_a_difference_that_is_the_same_at_every_seed_is_not_called_paired(frozen_of):
    runs = long_table({"smooth_ap": 0.5}, sd=0.02)
    table = judged(runs.assign(value=runs["value"] + 0.01), (), frozen_of(runs))
    assert table["reason"].str.contains("judged as two groups").all()
    assert not table["reason"].str.contains("paired").any()


def test_a_drift_between_our_runs_and_theirs_need_not_stand_for_the_method():
    near = judged(cub({"fast_ap": 0.5975}, sd=0.001))
    far = judged(cub({"fast_ap": 0.55}, sd=0.001))
    row_near = row(near)
    row_far = row(far)
    assert row_near["verdict"] == "drifted"
    assert row_far["verdict"] == "drifted"
    assert not row_near["stands"]
    assert row_far["stands"]
    assert row_near["changes_under"] == "laboratory spread"
    assert row_near["tip_laboratory"] < 0.5 < row_far["tip_laboratory"]
    assert fails(near).sum() == 0
    assert fails(far).sum() == 1
    assert "0 of 1 drifts stand" in summary_text(near)
    (message,) = drifted_messages(near)
    assert "does not stand under laboratory, holds up to laboratories 0." in message


def test_an_inconclusive_verdict_has_no_standing():
    found = row_at(0.605, sd=0.01)
    assert found["verdict"] == "inconclusive"
    assert found["stands"] is None
    assert found["changes_under"] == ""
    assert np.isnan(found["tip_laboratory"])


def test_the_ratio_of_spreads_begins_at_the_printed_one():
    found = row_at(0.55, sd=0.001)
    ratio = found["reference_sd"] / found["ours_spread"]
    assert found["tip_ratio"] > ratio
    assert ratio > 1


def test_a_printed_gain_is_judged_by_the_gains_under_each_seed():
    runs = cub({"roadmap": 0.26, "sup_ap": 0.25}, metrics=("map_at_r",), sd=1e-4)
    table = judged(runs, ["roadmap2021v2"]).query("table == 'fig5a' and batch_size == 128")
    values = runs[runs["selection"] == "last"].pivot(index="seed", columns="loss", values="value")
    gains = 100 * (values["roadmap"] / values["sup_ap"] - 1)
    (row,) = table.itertuples()
    assert row.reference_mean == 2.4
    assert row.ours_mean == pytest.approx(gains.mean())
    margin = margin_of("map_at_r", 25.0) / values["sup_ap"].mean()
    assert row.margin == pytest.approx(margin)
    assert row.ours_n == 5
    assert row.verdict == "reproduced"


def test_a_verdict_says_on_what_assumptions_it_rests():
    runs = cub({"fast_ap": 0.6128})
    found = {}
    for cell, candidate in grid_of(runs).candidates.items():
        found[cell] = replace(candidate, assumed=("dataset (above 1)",))
    sides = pairs_of_numbers(load_papers().asked([TABLE]), Samples(run_table(runs)), found)
    (resting,) = measured(judging.judged(sides)).itertuples()
    assert resting.assumed
    assert resting.reason.endswith("assumed: dataset (above 1)")
    plain = judged(runs)
    assert "assumed" not in plain["reason"].str.cat()
    assert not plain["assumed"].any()
