"""What claims test: the numbers of each kind on runs with a known truth, the one test behind every
claim against SciPy, and how often both verdicts are false by simulation under a fixed seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from error_rates.claims import SCENARIOS, beyond_limits, claim_table
from made_up_results import grid_of, long_table, run_table, without_number
from scipy import stats

from benchmark.claims.claim_tests import KINDS, RATIO, ClaimPart
from benchmark.claims.claim_verdicts import decide, judge_claims
from benchmark.published.loading import load_papers
from benchmark.published.quantities import GapDecrease
from benchmark.published.schema import Arm, Claim, Scope, printed_numbers
from benchmark.published.vocabulary import load_vocabulary
from benchmark.stats.reproduction import RangeTest, range_test
from benchmark.stats.samples import Spread

A, B, C = (Arm(name) for name in ("smooth_ap", "sup_ap", "roadmap"))


def claim(kind, *, metrics=("map_at_r",), levels=(), **options):
    scope = (Scope(("glyphs",), backbone="tiny"),)
    arms = {key: tuple(options.pop(key, ())) for key in ("first", "second")}
    options["level_arms"] = dict(levels)
    named = {"name": kind, "source": "roadmap2021v2", **arms, **options}
    return Claim("table 1", "a sentence", kind, metrics, scope, **named)


def judged(runs, *claims):
    verdicts, parts = judge_claims(run_table(runs), claims, grid_of(runs))
    return verdicts.set_index(["claim", "reading"]), parts


def row_of(runs, asked, reading="here"):
    """Returns the verdict on one claim under one reading."""
    verdicts, _parts = judged(runs, asked)
    return verdicts.loc[asked.name, reading]


def verdict_of(runs, asked):
    return row_of(runs, asked)["verdict"]


def on(asked, *datasets):
    """Returns the claim as one about these datasets."""
    return replace(asked, published=(Scope(datasets, backbone="tiny"),))


def curve(means, **rest):
    """Returns runs whose mean depends on (loss, batch size)."""
    tables = []
    for (loss, size), mean in means.items():
        runs = long_table({loss: mean}, batch_sizes=(size,), seed=size + len(loss), **rest)
        tables.append(runs)
    return pd.concat(tables)


A_BEATS_B = claim("beats", first=[A], second=[B])
B_BEATS_A = claim("beats", first=[B], second=[A])


@pytest.fixture
def b_is_better():
    """Runs where B is 5 points above A."""
    return long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, sd=0.001)


@pytest.fixture
def two_sizes():
    """Runs of two batch sizes where B is 5 points above A."""
    return long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, batch_sizes=(32, 64))


def test_beats_takes_paired_differences_in_points_at_every_batch_size(two_sizes):
    verdicts, parts = judged(two_sizes, B_BEATS_A)
    row = verdicts.loc["beats", "published"]
    assert row["verdict"] == "supported"
    assert row["parts"] == 2
    assert row["n"] == 5
    assert row["unit"] == "points"
    last = two_sizes.query("selection == 'last' and metric == 'map_at_r' and batch_size == 32")
    by_loss = last.pivot(index="seed", columns="loss", values="value")
    differences = by_loss["sup_ap"] - by_loss["smooth_ap"]
    small = parts["part"].str.contains("batch 32")
    published = parts["reading"] == "published"
    estimate = parts.loc[small & published, "estimate"].item()
    assert estimate == pytest.approx(100 * differences.mean())


def test_beats_the_other_way_round_is_contradicted(b_is_better):
    assert verdict_of(b_is_better, A_BEATS_B) == "contradicted"


@pytest.mark.parametrize(
    ("by", "verdict"),
    [
        (4.0, "supported"),
        (6.0, "contradicted"),
    ],
)
def test_beats_by_points_asks_for_that_much(b_is_better, by, verdict):
    assert verdict_of(b_is_better, replace(B_BEATS_A, by=by)) == verdict


@pytest.mark.parametrize(
    ("by", "margin", "verdict"),
    [
        (5.0, 1.0, "supported"),
        (3.0, 1.0, "contradicted"),
        (7.0, 1.0, "contradicted"),
        (0.0, 6.0, "supported"),
    ],
)
def test_differs_by_asks_for_so_many_points_give_or_take_the_margin(
    b_is_better, by, margin, verdict
):
    row = row_of(b_is_better, claim("differs_by", first=[B], second=[A], by=by, margin=margin))
    assert row["verdict"] == verdict
    assert row["low"] == by - margin
    assert row["high"] == by + margin


@pytest.mark.parametrize(
    ("enough", "verdict"),
    [
        (None, "contradicted"),
        ((2, 3), "supported"),
        ((1, 3), "supported"),
        ((3, 4), "inconclusive"),
    ],
)
def test_a_sentence_about_some_of_the_parts_may_fail_in_others(enough, verdict):
    """Two of three sizes hold; a fourth that never ran could still be the third of (3, 4)."""
    means = {
        ("smooth_ap", 32): 0.5,
        ("smooth_ap", 64): 0.5,
        ("smooth_ap", 128): 0.5,
        ("sup_ap", 32): 0.55,
        ("sup_ap", 64): 0.55,
        ("sup_ap", 128): 0.45,
    }
    runs = curve(means, sd=0.001)
    assert verdict_of(runs, replace(B_BEATS_A, enough=enough)) == verdict


def test_a_sentence_about_some_is_contradicted_once_too_many_parts_fail():
    """Partial conjunctions by hand: p of k of n is (n - k + 1) times the k-th smallest p."""
    parts = [
        ClaimPart("a", GOOD),
        ClaimPart("b", -GOOD),
        ClaimPart("c", -GOOD),
    ]
    p = decide([ClaimPart("b", -GOOD)], 0.05).p_contradicted
    two_of_three = decide(parts, 0.05, enough=(2, 3))
    assert two_of_three.verdict == "contradicted"
    assert two_of_three.p_contradicted == pytest.approx(2 * p)
    p_holds = decide([ClaimPart("a", GOOD)], 0.05).decisive.p
    for alpha, verdict in (
        (0.05, "supported"),
        (2.9 * p_holds, "inconclusive"),
        (3.1 * p_holds, "supported"),
    ):
        one_of_three = decide(parts, alpha, enough=(1, 3))
        assert one_of_three.verdict == verdict


def test_monotone_allows_a_flat_step_and_refuses_a_fall_beyond_the_margin():
    rising = {
        ("smooth_ap", 32): 0.5,
        ("smooth_ap", 64): 0.55,
        ("smooth_ap", 128): 0.55,
    }
    falling = {**rising, ("smooth_ap", 128): 0.52}
    for means, verdict in ((rising, "supported"), (falling, "contradicted")):
        found, parts = judged(curve(means, sd=0.002), claim("monotone", first=[A]))
        assert found.loc["monotone", "here"]["verdict"] == verdict
    names = parts["part"].str
    assert names.contains("batch 128 - 64").any()
    assert names.contains("per doubling").any()


def test_monotone_is_not_supported_by_a_flat_curve():
    flat = long_table({"smooth_ap": 0.5}, batch_sizes=(32, 64, 128))
    assert verdict_of(flat, claim("monotone", first=[A])) != "supported"


@pytest.mark.parametrize(
    ("best", "near", "verdict"),
    [
        ("10", [], "contradicted"),
        ("40", [], "contradicted"),
        ("10", ["5"], "supported"),
    ],
)
def test_best_at_spares_levels_near_the_best_within_the_margin(best, near, verdict):
    levels = {"5": A, "10": B, "40": C}
    runs = long_table({"smooth_ap": 0.552, "sup_ap": 0.55, "roadmap": 0.5}, sd=0.001)
    assert verdict_of(runs, claim("best_at", levels=levels, best=best, near=near)) == verdict


@pytest.mark.parametrize(
    ("farthest", "verdict"),
    [
        (0.502, "supported"),
        (0.53, "contradicted"),
    ],
)
def test_insensitive_needs_all_pairs_inside_the_margin(farthest, verdict):
    levels = {"5": A, "10": B, "40": C}
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.501, "roadmap": farthest}, sd=0.001)
    row = row_of(runs, claim("insensitive", levels=levels))
    assert row["verdict"] == verdict
    assert row["parts"] == 3
    assert row["low"] == -0.5
    assert row["high"] == 0.5


def test_a_relative_gain_that_shrinks_with_the_batch_is_told_from_one_that_grows():
    means = {
        ("smooth_ap", 32): 0.4,
        ("roadmap", 32): 0.48,
        ("smooth_ap", 128): 0.5,
        ("roadmap", 128): 0.51,
    }
    runs = curve(means, sd=0.001)
    shrinks = row_of(runs, claim("shrinks", first=[C], second=[A]))
    grows = row_of(runs, claim("grows", first=[C], second=[A]))
    assert shrinks["verdict"] == "supported"
    assert grows["verdict"] == "contradicted"
    # 20% at 32 and 2% at 128: 9% of gain per doubling
    assert shrinks["estimate"] == pytest.approx(9.0, abs=0.3)


@pytest.mark.parametrize(
    ("elsewhere", "difference", "verdict"),
    [
        (0.51, 4.0, "supported"),
        (0.6, -5.0, "contradicted"),
    ],
)
def test_gains_most_compares_the_gains_on_two_datasets(elsewhere, difference, verdict):
    home = long_table({"smooth_ap": 0.5, "roadmap": 0.55}, sd=0.001)
    other = long_table({"smooth_ap": 0.5, "roadmap": elsewhere}, sd=0.001, dataset="leaves", seed=1)
    asked = on(claim("gains_most", first=[C], second=[A]), "glyphs", "leaves")
    found, _parts = judged(pd.concat([home, other]), asked)
    assert found["verdict"].tolist() == [verdict, verdict]
    assert found["parts"].tolist() == [1, 1]
    assert found["estimate"].iloc[0] == pytest.approx(difference, abs=0.3)


def test_a_printed_number_stands_in_for_the_runs_of_a_rival_on_its_own_dataset_alone():
    rival = Arm("blackbox_ap", {"printed": "smoothap2020/table2"})  # 78.6 on SOP
    beats = claim("beats", first=[A], second=[rival], metrics=("recall_at_1",), by=1.0)
    asked = on(beats, "sop")
    for mean, verdict in ((0.801, "supported"), (0.79, "contradicted")):
        runs = long_table({"smooth_ap": mean}, sd=0.001, dataset="sop")
        row = row_of(runs, asked, "published")
        assert row["verdict"] == verdict
        assert row["n"] == 5
        assert row["estimate"] == pytest.approx(100 * mean - 78.6, abs=0.2)
    glyphs, _parts = judged(long_table({"smooth_ap": 0.9}), asked)
    assert set(glyphs["verdict"]) == {"not_run"}


def test_a_printed_rival_of_a_loss_with_its_own_batch_size_is_asked_once():
    rival = Arm("blackbox_ap", {"printed": "smoothap2020/table2"})
    of_size_64 = replace(A, batch_size=64)
    beats = claim("beats", first=[of_size_64], second=[rival], metrics=("recall_at_1",))
    runs = long_table({"smooth_ap": 0.801}, sd=0.001, dataset="sop", batch_sizes=(32, 64))
    row = row_of(runs, on(beats, "sop"), "published")
    assert row["parts"] == 1
    assert row["n"] == 5


@pytest.mark.parametrize(
    ("where", "backbone", "best"),
    [
        ({}, "", 78.9),
        ({}, "resnet101", 78.9),
        ({"expansion": "aqe"}, "", 82.7),
    ],
)
def test_the_best_copied_number_is_the_highest_of_a_table_under_the_same_condition(
    where, backbone, best
):
    printed = {"printed": "listwise2019/table2", **where}
    rival = Arm("best_copied", printed, backbone=backbone).resolved(load_vocabulary())
    table = load_papers()["listwise2019"].table("table2")
    (found,) = printed_numbers(rival, "landmarks_clean", "rparis6k_medium", "map", table)
    assert found.points == best


@pytest.mark.parametrize(
    ("backbone", "loss"),
    [
        ("", "delf_asmk_sp"),
        ("resnet101", "gem_contrastive"),
    ],
)
def test_the_best_copied_number_may_be_of_another_loss_for_one_backbone(backbone, loss):
    rival = Arm("best_copied", {"printed": "listwise2019/table2"}, backbone=backbone)
    table = load_papers()["listwise2019"].table("table2")
    (found,) = printed_numbers(rival, "landmarks_clean", "roxford5k_medium", "map", table)
    assert found.loss == loss


def test_convergence_tells_a_curve_that_rises_early_from_one_that_rises_late():
    def curves(batch_size, early):
        runs = long_table({"fast_ap": 0.6}, batch_sizes=(batch_size,), sd=0.0)
        rng = np.random.default_rng(batch_size)
        last = runs.query("metric == 'recall_at_1' and selection == 'last'")
        noise = rng.normal(0, 0.001, len(last))
        after = last.assign(selection="curve")
        before = after.assign(epoch=2, value=early + noise)
        return pd.concat([runs, before, after])

    asked = claim("monotone", first=[Arm("fast_ap")], metrics=("convergence",), margin=0.5)
    runs = pd.concat([curves(32, 0.45), curves(64, 0.54)])
    found, _parts = judged(runs, asked)
    assert set(found["verdict"]) == {"supported"}
    assert found["estimate"].iloc[0] == pytest.approx(15.0, abs=0.5)  # 75 to 90 percent


def test_the_decomposability_gap_is_a_ratio_to_sup_ap_where_it_was_measured():
    runs = long_table({"sup_ap": 0.5, "roadmap": 0.5}, batch_sizes=(32, 64))
    metrics = ("decomposability_gap",)
    asked = claim("cost_ratio", first=[C], second=[B], metrics=metrics, between=[0.001, 1.0])
    gaps = [GapDecrease("glyphs", 64, seed, 5.0 + seed, "tiny") for seed in range(3)]
    _, parts = judge_claims(run_table(runs), [asked], grid_of(runs), gaps=gaps)
    small, large = parts[parts["reading"] == "published"].to_dict("records")
    assert small["n"] == 0
    assert large["n"] == 3
    assert large["estimate"] == pytest.approx(0.94, abs=0.001)


def with_costs(runs, metric, values):
    """Returns the runs with one cost each, in the order of the runs."""
    ended = runs[runs["selection"] == "last"].drop_duplicates("run_id")
    costs = ended.assign(split="train", selection="cost", metric=metric, epoch=np.nan, value=values)
    return pd.concat([runs, costs])


def trained(loss, seconds, epochs):
    """Returns five runs of ``epochs`` epochs that took about ``seconds`` to train."""
    runs = long_table({loss: 0.5}).assign(epoch=epochs)
    rng = np.random.default_rng(len(loss))
    return with_costs(runs, "train_seconds", seconds * rng.normal(1.0, 0.01, 5))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (2.5, 3.5, "supported"),
        (1.5, 2.5, "contradicted"),
    ],
)
def test_cost_ratio_compares_seconds_per_epoch(low, high, verdict):
    a = trained("smooth_ap", 100.0, epochs=4)
    c = trained("roadmap", 450.0, epochs=6)
    metrics = ("seconds_per_epoch",)
    asked = claim("cost_ratio", first=[C], second=[A], metrics=metrics, between=[low, high])
    row = row_of(pd.concat([a, c]), asked)
    assert row["verdict"] == verdict
    assert row["estimate"] == pytest.approx(3.0, rel=0.02)
    assert row["low"] == pytest.approx(low)
    assert row["high"] == pytest.approx(high)


@pytest.mark.parametrize(
    ("between", "verdict"),
    [
        ([90.0, 110.0], "supported"),
        ([120.0], "contradicted"),
    ],
)
def test_costs_asks_for_an_amount(between, verdict):
    runs = trained("smooth_ap", 100.0, epochs=4)
    row = row_of(runs, claim("costs", first=[A], metrics=("train_seconds",), between=between))
    assert row["verdict"] == verdict
    assert row["unit"] == "train seconds"
    assert row["estimate"] == pytest.approx(100.0, rel=0.02)


@pytest.mark.parametrize(
    ("between", "verdict"),
    [
        ([1.2], "supported"),
        ([1.6, 2.0], "contradicted"),
    ],
)
def test_counts_are_the_same_for_every_seed_and_need_no_test(between, verdict):
    a = with_costs(long_table({"smooth_ap": 0.5}), "updates", 200)
    c = with_costs(long_table({"roadmap": 0.5}), "updates", 300)
    asked = claim("cost_ratio", first=[C], second=[A], metrics=("n_updates",), between=between)
    row = row_of(pd.concat([a, c]), asked)
    assert row["verdict"] == verdict
    assert "1.50 times, counted" in row["reason"]


@pytest.mark.parametrize(
    "asked",
    [
        claim("beats", first=[C], second=[A]),
        claim("monotone", first=[A]),
        claim("grows", first=[C], second=[A]),
        claim("insensitive", levels={"1": A, "2": C}),
        claim("best_at", levels={"1": A, "2": C}, best="2"),
    ],
    ids=lambda asked: asked.kind,
)
def test_one_seed_is_inconclusive_in_every_kind(asked):
    means = {
        ("smooth_ap", 32): 0.4,
        ("roadmap", 32): 0.5,
        ("smooth_ap", 64): 0.5,
        ("roadmap", 64): 0.7,
    }
    found, _parts = judged(curve(means, seeds=1), asked)
    assert set(found["verdict"]) == {"inconclusive"}


@pytest.mark.parametrize(
    "asked",
    [
        B_BEATS_A,
        A_BEATS_B,
        claim("insensitive", levels={"1": A, "2": B}),
        claim("best_at", levels={"1": A, "2": B}, best="2"),
    ],
    ids=lambda asked: asked.kind,
)
def test_a_loss_that_diverges_loses_its_comparison(two_sizes, asked):
    gone = without_number(two_sizes, "loss == 'sup_ap' and batch_size == 64", "diverged")
    assert verdict_of(gone, asked) == "contradicted"


def test_the_reason_counts_the_runs_that_diverged(two_sizes):
    gone = without_number(two_sizes, "loss == 'sup_ap' and batch_size == 64", "diverged")
    row = row_of(gone, B_BEATS_A, "published")
    assert "5 of 5 runs diverged on the first side, 0 of 5 on the second" in row["reason"]


def test_a_loss_whose_rival_always_diverges_wins_that_comparison(two_sizes):
    gone = without_number(two_sizes, "loss == 'smooth_ap' and batch_size == 64", "diverged")
    row = row_of(gone, B_BEATS_A)
    assert row["verdict"] == "supported"
    assert row["parts_holding"] == 2
    assert row["parts_run"] == 2


@pytest.mark.parametrize("reading", ["published", "here"])
def test_where_both_sides_diverge_nothing_is_supported(two_sizes, reading):
    gone = without_number(two_sizes, "batch_size == 64", "diverged")
    assert row_of(gone, B_BEATS_A, reading)["verdict"] == "inconclusive"


def test_only_seeds_that_both_sides_have_are_compared(b_is_better):
    runs = b_is_better.query("loss == 'smooth_ap' or seed >= 2")
    assert row_of(runs, B_BEATS_A)["n"] == 3


def one_part(values, low=0.0, high=np.inf) -> RangeTest:
    """Returns the test of a part without sisters."""
    spread = Spread(sd=values.std(ddof=1), df=len(values) - 1)
    return range_test(values, low, high, 0.05, spread)


GOOD = np.array([1.0, 1.2, 0.8, 1.1, 0.9])
NOISE = np.array([0.5, -0.6, 0.1, -0.2, 0.3])


def test_p_values_are_those_of_one_sided_t_tests():
    tested = one_part(NOISE, low=-1.0)
    greater = stats.ttest_1samp(NOISE, -1.0, alternative="greater")
    less = stats.ttest_1samp(NOISE, -1.0, alternative="less")
    assert tested.p == pytest.approx(greater.pvalue)
    assert tested.p_against == pytest.approx(less.pvalue)
    interval = stats.ttest_1samp(NOISE, 0).confidence_interval(0.90)
    assert tested.ci_low == pytest.approx(interval.low)
    assert tested.ci_high == pytest.approx(interval.high)


def test_a_part_inside_a_range_needs_both_one_sided_tests():
    tested = one_part(NOISE, low=-1.0, high=0.5)
    above = stats.ttest_1samp(NOISE, -1.0, alternative="greater").pvalue
    below = stats.ttest_1samp(NOISE, 0.5, alternative="less").pvalue
    assert tested.p == pytest.approx(max(above, below))
    outside = min(1 - above, 1 - below)
    assert tested.p_against == pytest.approx(min(1.0, 2 * outside))


def test_every_part_has_to_hold_for_a_supported_sentence():
    a = ClaimPart("a", GOOD)
    both_hold = decide([a, ClaimPart("b", GOOD)], 0.05)
    assert both_hold.verdict == "supported"
    one_holds = decide([a, ClaimPart("b", NOISE)], 0.05)
    assert one_holds.verdict == "inconclusive"
    assert one_holds.parts_holding == 1
    assert one_holds.decisive.part == "b"
    assert "1 of 2 parts" in one_holds.reason


def test_one_reversed_part_contradicts_whatever_the_others_say():
    found = decide([ClaimPart("a", GOOD), ClaimPart("b", -GOOD)], 0.05)
    assert found.verdict == "contradicted"
    assert found.reason.startswith("b ")


def test_contradicting_evidence_is_corrected_for_the_number_of_parts():
    values = np.array([-1.0, -2.5, 0.2, -1.4, -0.6])
    p_alone = one_part(values).p_against
    assert 0.01 < p_alone < 0.05
    against = ClaimPart("a", values)
    alone = decide([against], 0.05)
    assert alone.verdict == "contradicted"
    neither = [ClaimPart(name, NOISE) for name in "bcdef"]
    of_six = decide([against, *neither], 0.05)
    assert of_six.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([5.0], "one seed"),
        ([5.0, 5.0, 5.0], "no spread"),
    ],
)
def test_one_seed_and_seeds_without_spread_never_decide(values, reason):
    found = decide([ClaimPart("a", np.array(values))], 0.05)
    assert found.verdict == "inconclusive"
    assert reason in found.reason


def test_a_missing_part_keeps_a_sentence_from_being_supported_but_not_from_being_contradicted():
    missing = ClaimPart("b", note="no run on cub")
    found = decide([ClaimPart("a", GOOD), missing], 0.05)
    assert found.verdict == "inconclusive"
    assert "no run on cub" in found.reason
    reversed_part = ClaimPart("a", -GOOD)
    assert decide([reversed_part, missing], 0.05).verdict == "contradicted"


def test_nothing_run_is_not_run_with_each_reason_once():
    missing = [ClaimPart(name, note="no run on cub") for name in "ab"]
    found = decide(missing, 0.05)
    assert found.verdict == "not_run"
    assert found.reason == "no run on cub"
    assert found.decisive is None


@pytest.mark.parametrize(
    ("alpha", "verdict"),
    [
        (0.05, "supported"),
        (0.0005, "inconclusive"),
    ],
)
def test_a_stricter_level_asks_for_more_evidence(alpha, verdict):
    found = decide([ClaimPart("a", GOOD - 0.7)], alpha)
    assert found.verdict == verdict


def test_ratios_are_shown_as_ratios():
    values = np.log([2.9, 3.0, 3.1])
    part = ClaimPart("a", values, low=np.log(2.5), high=np.log(3.5), unit=RATIO)
    spread = Spread(sd=values.std(ddof=1), df=2)
    tested = part.tested(0.05, spread)
    assert tested.estimate == pytest.approx(3.0, abs=0.01)
    assert tested.low == pytest.approx(2.5, abs=0.01)
    assert "3.00 [" in tested.text
    without_limit = replace(part, high=np.inf).tested(0.05, spread)
    assert np.isnan(without_limit.high)


def test_parts_of_one_label_are_told_apart():
    """Two scopes of one dataset, one of them with its protocol, have parts of one label."""
    parts = [
        ClaimPart("a", NOISE),
        ClaimPart("a", NOISE.copy()),
        ClaimPart("a", np.ones(3)),
    ]
    found = decide(parts, 0.05)
    assert found.verdict == "inconclusive"
    assert "1 could not be tested (first: a" in found.reason


@pytest.fixture(scope="module")
def table():
    return claim_table(200, seed=2, seeds=(3,))


def test_false_verdicts_stay_within_five_percent_for_every_kind(table):
    assert {entry["claim"]["kind"] for entry in SCENARIOS.values()} == set(KINDS)
    assert set(table["scenario"]) == set(SCENARIOS)
    over = beyond_limits(table)
    assert over.empty, over.to_string()


def test_the_limits_are_used_and_not_merely_kept(table):
    assert table["supported"].max() > 0.02
    assert table["contradicted"].max() > 0.02


def test_equal_seeds_give_equal_rates():
    first, second = (claim_table(20, seed=3, seeds=(2,)) for _ in range(2))
    assert first.equals(second)
