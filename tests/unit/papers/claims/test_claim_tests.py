"""What claims test: the numbers of each kind on runs with a known truth, the one test behind every
claim against SciPy, and how often both verdicts are false by simulation under a fixed seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from error_rates.claims import SCENARIOS, beyond_limits, claim_table
from made_up_results import candidates_of, long_table, run_table, without_number
from scipy import stats

from benchmark.papers.claim_tests import KINDS, RATIO, ClaimPart
from benchmark.papers.claim_verdicts import decide, judge_claims
from benchmark.papers.loading import load_papers
from benchmark.papers.quantities import GapDecrease
from benchmark.papers.schema import Arm, Claim, Scope, printed_numbers
from benchmark.papers.vocabulary import load_vocabulary
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
    verdicts, parts = judge_claims(run_table(runs), claims, candidates_of(runs))
    return verdicts.set_index(["claim", "reading"]), parts


def curve(means, **rest):
    """Returns runs whose mean depends on (loss, batch size)."""
    tables = []
    for (loss, size), mean in means.items():
        tables.append(long_table({loss: mean}, batch_sizes=(size,), seed=size + len(loss), **rest))
    return pd.concat(tables, ignore_index=True)


def test_beats_takes_paired_differences_in_points_at_every_batch_size():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, batch_sizes=(32, 64))
    verdicts, parts = judged(runs, claim("beats", first=[B], second=[A]))
    row = verdicts.loc["beats", "published"]
    assert (row["verdict"], row["parts"], row["n"], row["unit"]) == ("supported", 2, 5, "points")
    last = runs[
        (runs["selection"] == "last") & (runs["metric"] == "map_at_r") & (runs["batch_size"] == 32)
    ]
    wide = last.pivot(index="seed", columns="loss", values="value")
    estimate = parts[(parts["reading"] == "published") & parts["part"].str.contains("batch 32")][
        "estimate"
    ].item()
    assert estimate == pytest.approx(100 * (wide["sup_ap"] - wide["smooth_ap"]).mean())


def test_beats_the_other_way_round_is_contradicted():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55})
    assert (
        judged(runs, claim("beats", first=[A], second=[B]))[0].loc["beats", "here"]["verdict"]
        == "contradicted"
    )


def test_beats_by_points_asks_for_that_much():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, sd=0.001)
    for by, verdict in ((4.0, "supported"), (6.0, "contradicted")):
        found = judged(runs, claim("beats", first=[B], second=[A], by=by))[0]
        assert found.loc["beats", "here"]["verdict"] == verdict


@pytest.mark.parametrize(
    ("by", "margin", "verdict"),
    [
        (5.0, 1.0, "supported"),
        (3.0, 1.0, "contradicted"),
        (7.0, 1.0, "contradicted"),
        (0.0, 6.0, "supported"),
    ],
)
def test_differs_by_asks_for_so_many_points_give_or_take_the_margin(by, margin, verdict):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, sd=0.001)
    asked = claim("differs_by", first=[B], second=[A], by=by, margin=margin)
    row = judged(runs, asked)[0].loc["differs_by", "here"]
    assert (row["verdict"], row["low"], row["high"]) == (verdict, by - margin, by + margin)


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
    means = {("sup_ap", size): 0.55 for size in (32, 64)} | {("sup_ap", 128): 0.45}
    means |= {("smooth_ap", size): 0.5 for size in (32, 64, 128)}
    asked = claim("beats", first=[B], second=[A], enough=enough)
    row = judged(curve(means, sd=0.001), asked)[0].loc["beats", "here"]
    assert row["verdict"] == verdict


def test_a_sentence_about_some_is_contradicted_once_too_many_parts_fail():
    """Partial conjunctions by hand: p of k of n is (n - k + 1) times the k-th smallest p."""
    parts = [ClaimPart("a", GOOD), ClaimPart("b", -GOOD), ClaimPart("c", -GOOD)]
    p = decide([ClaimPart("b", -GOOD)], 0.05).p_contradicted
    found = decide(parts, 0.05, enough=(2, 3))
    assert found.verdict == "contradicted"
    assert found.p_contradicted == pytest.approx(2 * p)
    assert decide(parts, 0.05, enough=(1, 3)).verdict == "supported"
    holds = decide([ClaimPart("a", GOOD)], 0.05).decisive.p
    assert decide(parts, 2.9 * holds, enough=(1, 3)).verdict == "inconclusive"
    assert decide(parts, 3.1 * holds, enough=(1, 3)).verdict == "supported"


def test_monotone_allows_a_flat_step_and_refuses_a_fall_beyond_the_margin():
    rising = {("smooth_ap", 32): 0.5, ("smooth_ap", 64): 0.55, ("smooth_ap", 128): 0.55}
    falling = {**rising, ("smooth_ap", 128): 0.52}
    for means, verdict in ((rising, "supported"), (falling, "contradicted")):
        found, parts = judged(curve(means, sd=0.002), claim("monotone", first=[A]))
        assert found.loc["monotone", "here"]["verdict"] == verdict
    assert parts["part"].str.contains("batch 128 - 64").any()
    assert parts["part"].str.contains("per doubling").any()


def test_monotone_is_not_supported_by_a_flat_curve():
    means = {("smooth_ap", size): 0.5 for size in (32, 64, 128)}
    assert (
        judged(curve(means), claim("monotone", first=[A]))[0].loc["monotone", "here"]["verdict"]
        != "supported"
    )


def test_best_at_spares_levels_near_the_best_within_the_margin():
    levels = {"5": A, "10": B, "40": C}
    runs = long_table({"smooth_ap": 0.552, "sup_ap": 0.55, "roadmap": 0.5}, sd=0.001)
    found = judged(
        runs, claim("best_at", levels=levels, best="10"), claim("best_at", levels=levels, best="40")
    )[0]
    assert list(found.loc[("best_at", "here"), "verdict"]) == ["contradicted", "contradicted"]
    near = claim("best_at", levels=levels, best="10", near=["5"])
    assert judged(runs, near)[0].loc["best_at", "here"]["verdict"] == "supported"


def test_insensitive_needs_all_pairs_inside_the_margin():
    levels = {"5": A, "10": B, "40": C}
    equal = long_table({"smooth_ap": 0.5, "sup_ap": 0.501, "roadmap": 0.502}, sd=0.001)
    apart = long_table({"smooth_ap": 0.5, "sup_ap": 0.501, "roadmap": 0.53}, sd=0.001)
    for runs, verdict in ((equal, "supported"), (apart, "contradicted")):
        row = judged(runs, claim("insensitive", levels=levels))[0].loc["insensitive", "here"]
        assert (row["verdict"], row["parts"], row["low"], row["high"]) == (verdict, 3, -0.5, 0.5)


def test_a_relative_gain_that_shrinks_with_the_batch_is_told_from_one_that_grows():
    means = {
        ("smooth_ap", 32): 0.4,
        ("roadmap", 32): 0.48,
        ("smooth_ap", 128): 0.5,
        ("roadmap", 128): 0.51,
    }
    runs = curve(means, sd=0.001)
    shrinks, grows = (claim(kind, first=[C], second=[A]) for kind in ("shrinks", "grows"))
    found = judged(runs, shrinks, grows)[0]
    assert found.loc["shrinks", "here"]["verdict"] == "supported"
    assert found.loc["grows", "here"]["verdict"] == "contradicted"
    # 20% at 32 and 2% at 128: 9% of gain per doubling
    assert found.loc["shrinks", "here"]["estimate"] == pytest.approx(9.0, abs=0.3)


@pytest.mark.parametrize(("elsewhere", "verdict"), [(0.51, "supported"), (0.6, "contradicted")])
def test_gains_most_compares_the_gains_on_two_datasets(elsewhere, verdict):
    home = long_table({"smooth_ap": 0.5, "roadmap": 0.55}, sd=0.001)
    other = long_table({"smooth_ap": 0.5, "roadmap": elsewhere}, sd=0.001, dataset="leaves", seed=1)
    asked = replace(
        claim("gains_most", first=[C], second=[A]),
        published=(Scope(("glyphs", "leaves"), backbone="tiny"),),
    )
    found, _parts = judged(pd.concat([home, other], ignore_index=True), asked)
    assert set(found["verdict"]) == {verdict}
    assert found["parts"].tolist() == [1, 1]
    expected = 100 * (0.05 - (elsewhere - 0.5))
    assert found["estimate"].iloc[0] == pytest.approx(expected, abs=0.3)


def test_a_printed_number_stands_in_for_the_runs_of_a_rival_on_its_own_dataset_alone():
    rival = Arm("blackbox_ap", {"printed": "smoothap2020/table2"})  # 78.6 on SOP
    asked = replace(
        claim("beats", first=[A], second=[rival], metrics=("recall_at_1",), by=1.0),
        published=(Scope(("sop",), backbone="tiny"),),
    )
    for mean, verdict in ((0.801, "supported"), (0.79, "contradicted")):
        runs = long_table({"smooth_ap": mean}, sd=0.001, dataset="sop")
        row = judged(runs, asked)[0].loc["beats", "published"]
        assert (row["verdict"], row["n"]) == (verdict, 5)
        assert row["estimate"] == pytest.approx(100 * mean - 78.6, abs=0.2)
    glyphs = judged(long_table({"smooth_ap": 0.9}), asked)[0]
    assert set(glyphs["verdict"]) == {"not_run"}


def test_a_printed_rival_of_a_loss_with_its_own_batch_size_is_asked_once():
    rival = Arm("blackbox_ap", {"printed": "smoothap2020/table2"})
    asked = claim("beats", first=[replace(A, batch_size=64)], second=[rival])
    asked = replace(asked, published=(Scope(("sop",), backbone="tiny"),), metrics=("recall_at_1",))
    runs = long_table({"smooth_ap": 0.801}, sd=0.001, dataset="sop", batch_sizes=(32, 64))
    row = judged(runs, asked)[0].loc["beats", "published"]
    assert (row["parts"], row["n"]) == (1, 5)


def test_the_best_copied_number_is_the_highest_of_a_table_under_the_same_condition():
    scope = (Scope(("landmarks_clean",), protocol="rparis6k_medium", backbone="resnet101"),)
    words = load_vocabulary()
    table = load_papers()["listwise2019"].table("table2")
    cases = [({}, "", 78.9), ({}, "resnet101", 78.9), ({"expansion": "aqe"}, "", 82.7)]
    for where, backbone, best in cases:
        printed = {"printed": "listwise2019/table2", **where}
        rival = Arm("best_copied", printed, backbone=backbone).resolved(words)
        place = (scope[0].datasets[0], scope[0].protocol)
        (found,) = printed_numbers(rival, *place, "map", table)
        assert found.points == best
    oxford = ("landmarks_clean", "roxford5k_medium")
    local = Arm("best_copied", {"printed": "listwise2019/table2"})
    assert printed_numbers(local, *oxford, "map", table)[0].loss == "delf_asmk_sp"
    (found,) = printed_numbers(replace(local, backbone="resnet101"), *oxford, "map", table)
    assert found.loss == "gem_contrastive"


def test_convergence_tells_a_curve_that_rises_early_from_one_that_rises_late():
    def curves(batch_size, early):
        runs = long_table({"fast_ap": 0.6}, batch_sizes=(batch_size,), sd=0.0)
        rng = np.random.default_rng(batch_size)
        first = runs[runs["metric"] == "recall_at_1"]
        first = first[first["selection"] == "last"]
        noise = rng.normal(0, 0.001, len(first))
        before = first.assign(selection="curve", epoch=2, value=early + noise)
        return pd.concat([runs, before, first.assign(selection="curve")], ignore_index=True)

    asked = claim("monotone", first=[Arm("fast_ap")], metrics=("convergence",), margin=0.5)
    runs = pd.concat([curves(32, 0.45), curves(64, 0.54)], ignore_index=True)
    found, _parts = judged(runs, asked)
    assert set(found["verdict"]) == {"supported"}
    assert found["estimate"].iloc[0] == pytest.approx(15.0, abs=0.5)  # 75 to 90 percent


def test_the_decomposability_gap_is_a_ratio_to_sup_ap_where_it_was_measured():
    runs = long_table({"sup_ap": 0.5, "roadmap": 0.5}, batch_sizes=(32, 64))
    metrics = ("decomposability_gap",)
    asked = claim("cost_ratio", first=[C], second=[B], metrics=metrics, between=[0.001, 1.0])
    gaps = [GapDecrease("glyphs", 64, seed, 5.0 + seed, "tiny") for seed in range(3)]
    _, parts = judge_claims(run_table(runs), [asked], candidates_of(runs), gaps=gaps)
    small, large = parts[parts["reading"] == "published"].to_dict("records")
    assert small["n"] == 0
    assert large["n"] == 3
    assert large["estimate"] == pytest.approx(0.94, abs=0.001)


def test_cost_ratio_compares_seconds_per_epoch():
    runs = pd.concat(
        [costs("smooth_ap", 100.0, epochs=4), costs("roadmap", 450.0, epochs=6)], ignore_index=True
    )
    three = claim(
        "cost_ratio", first=[C], second=[A], metrics=("seconds_per_epoch",), between=[2.5, 3.5]
    )
    twice = claim(
        "cost_ratio", first=[C], second=[A], metrics=("seconds_per_epoch",), between=[1.5, 2.5]
    )
    found = judged(runs, three, twice)[0].xs("here", level="reading")
    assert list(found["verdict"]) == ["supported", "contradicted"]
    assert found["estimate"].iloc[0] == pytest.approx(3.0, rel=0.02)
    assert (found["low"].iloc[0], found["high"].iloc[0]) == pytest.approx((2.5, 3.5))


def test_costs_asks_for_an_amount():
    runs = costs("smooth_ap", 100.0, epochs=4)
    asked = {"first": [A], "metrics": ("train_seconds",)}
    for between, verdict in (([90.0, 110.0], "supported"), ([120.0], "contradicted")):
        row = judged(runs, claim("costs", between=between, **asked))[0].loc["costs", "here"]
        assert (row["verdict"], row["unit"]) == (verdict, "train seconds")
        assert row["estimate"] == pytest.approx(100.0, rel=0.02)


def test_counts_are_the_same_for_every_seed_and_need_no_test():
    runs = pd.concat([counted("smooth_ap", 200), counted("roadmap", 300)], ignore_index=True)
    for between, verdict in (([1.2], "supported"), ([1.6, 2.0], "contradicted")):
        asked = claim("cost_ratio", first=[C], second=[A], metrics=("n_updates",), between=between)
        row = judged(runs, asked)[0].loc["cost_ratio", "here"]
        assert row["verdict"] == verdict
        assert "1.50 times, counted" in row["reason"]


def counted(loss, updates):
    """Returns runs that took ``updates`` updates."""
    runs = long_table({loss: 0.5})
    ended = runs[runs["selection"] == "last"].drop_duplicates("run_id")
    ended = ended.assign(split="train", selection="cost", metric="updates", value=updates)
    return pd.concat([runs, ended.assign(epoch=np.nan)], ignore_index=True)


def costs(loss, seconds, epochs):
    """Returns runs of ``epochs`` epochs that took about ``seconds`` to train."""
    runs = long_table({loss: 0.5}).assign(epoch=epochs)
    rng = np.random.default_rng(len(loss))
    timed = runs[runs["selection"] == "last"].drop_duplicates("run_id").copy()
    timed = timed.assign(split="train", selection="cost", metric="train_seconds", epoch=np.nan)
    timed["value"] = seconds * rng.normal(1.0, 0.01, len(timed))
    return pd.concat([runs, timed], ignore_index=True)


def test_one_seed_is_inconclusive_in_every_kind():
    runs = curve(
        {
            ("smooth_ap", 32): 0.4,
            ("roadmap", 32): 0.5,
            ("smooth_ap", 64): 0.5,
            ("roadmap", 64): 0.7,
        },
        seeds=1,
    )
    found, _ = judged(
        runs,
        claim("beats", first=[C], second=[A]),
        claim("monotone", first=[A]),
        claim("grows", first=[C], second=[A]),
        claim("insensitive", levels={"1": A, "2": C}),
        claim("best_at", levels={"1": A, "2": C}, best="2"),
    )
    assert set(found["verdict"]) == {"inconclusive"}


def test_a_loss_that_diverges_loses_its_comparison():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, batch_sizes=(32, 64))
    gone = without_number(runs, "loss == 'sup_ap' and batch_size == 64", "diverged")
    for first, second, verdict in ((B, A, "contradicted"), (A, B, "contradicted")):
        row = judged(gone, claim("beats", first=[first], second=[second]))[0].loc["beats", "here"]
        assert row["verdict"] == verdict
    row = judged(gone, claim("beats", first=[B], second=[A]))[0].loc["beats", "published"]
    assert "5 of 5 runs diverged on the first side, 0 of 5 on the second" in row["reason"]
    levels = {"1": A, "2": B}
    for kind, options in (("insensitive", {}), ("best_at", {"best": "2"})):
        row = judged(gone, claim(kind, levels=levels, **options))[0].loc[kind, "here"]
        assert row["verdict"] == "contradicted"


def test_a_loss_whose_rival_always_diverges_wins_that_comparison():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, batch_sizes=(32, 64))
    gone = without_number(runs, "loss == 'smooth_ap' and batch_size == 64", "diverged")
    row = judged(gone, claim("beats", first=[B], second=[A]))[0].loc["beats", "here"]
    assert (row["verdict"], row["parts_holding"], row["parts_run"]) == ("supported", 2, 2)


def test_where_both_sides_diverge_nothing_is_supported():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55}, batch_sizes=(32, 64))
    gone = without_number(runs, "batch_size == 64", "diverged")
    for reading in ("published", "here"):
        row = judged(gone, claim("beats", first=[B], second=[A]))[0].loc["beats", reading]
        assert row["verdict"] == "inconclusive"


def test_only_seeds_that_both_sides_have_are_compared():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.55})
    runs = runs[~((runs["loss"] == "sup_ap") & (runs["seed"] < 2))]
    assert judged(runs, claim("beats", first=[B], second=[A]))[0].loc["beats", "here"]["n"] == 3


def one_part(part: ClaimPart, alpha: float) -> RangeTest:
    """Return the test of one part."""
    return range_test(part.values, part.low, part.high, alpha, own_spread(part))


def own_spread(part: ClaimPart) -> Spread:
    """Return the spread of a part without sisters."""
    return Spread(sd=part.values.std(ddof=1), df=len(part.values) - 1)


GOOD = np.array([1.0, 1.2, 0.8, 1.1, 0.9])
NOISE = np.array([0.5, -0.6, 0.1, -0.2, 0.3])


def test_p_values_are_those_of_one_sided_t_tests():
    tested = one_part(ClaimPart("a", NOISE, low=-1.0), 0.05)
    greater = stats.ttest_1samp(NOISE, -1.0, alternative="greater")
    less = stats.ttest_1samp(NOISE, -1.0, alternative="less")
    assert tested.p == pytest.approx(greater.pvalue)
    assert tested.p_against == pytest.approx(less.pvalue)
    interval = stats.ttest_1samp(NOISE, 0).confidence_interval(0.90)
    assert (tested.ci_low, tested.ci_high) == pytest.approx((interval.low, interval.high))


def test_a_part_inside_a_range_needs_both_one_sided_tests():
    tested = one_part(ClaimPart("a", NOISE, low=-1.0, high=0.5), 0.05)
    above = stats.ttest_1samp(NOISE, -1.0, alternative="greater").pvalue
    below = stats.ttest_1samp(NOISE, 0.5, alternative="less").pvalue
    assert tested.p == pytest.approx(max(above, below))
    outside = min(1 - above, 1 - below)
    assert tested.p_against == pytest.approx(min(1.0, 2 * outside))


def test_every_part_has_to_hold_for_a_supported_sentence():
    assert decide([ClaimPart("a", GOOD), ClaimPart("b", GOOD)], 0.05).verdict == "supported"
    found = decide([ClaimPart("a", GOOD), ClaimPart("b", NOISE)], 0.05)
    assert (found.verdict, found.parts_holding) == ("inconclusive", 1)
    assert found.decisive.part == "b"
    assert "1 of 2 parts" in found.reason


def test_one_reversed_part_contradicts_whatever_the_others_say():
    found = decide([ClaimPart("a", GOOD), ClaimPart("b", -GOOD)], 0.05)
    assert found.verdict == "contradicted"
    assert found.reason.startswith("b ")


def test_contradicting_evidence_is_corrected_for_the_number_of_parts():
    values = np.array([-1.0, -2.5, 0.2, -1.4, -0.6])
    alone = one_part(ClaimPart("a", values), 0.05).p_against
    assert 0.01 < alone < 0.05
    assert decide([ClaimPart("a", values)], 0.05).verdict == "contradicted"
    assert (
        decide(
            [ClaimPart("a", values), *[ClaimPart(str(n), NOISE) for n in range(5)]], 0.05
        ).verdict
        == "inconclusive"
    )


def test_one_seed_never_decides():
    found = decide([ClaimPart("a", np.array([5.0]))], 0.05)
    assert found.verdict == "inconclusive"
    assert "one seed" in found.reason


def test_seeds_without_spread_never_decide():
    found = decide([ClaimPart("a", np.array([5.0, 5.0, 5.0]))], 0.05)
    assert found.verdict == "inconclusive"
    assert "no spread" in found.reason


def test_a_missing_part_keeps_a_sentence_from_being_supported_but_not_from_being_contradicted():
    missing = ClaimPart("b", note="no run on cub")
    found = decide([ClaimPart("a", GOOD), missing], 0.05)
    assert found.verdict == "inconclusive"
    assert "no run on cub" in found.reason
    assert decide([ClaimPart("a", -GOOD), missing], 0.05).verdict == "contradicted"


def test_nothing_run_is_not_run_with_each_reason_once():
    found = decide(
        [ClaimPart("a", note="no run on cub"), ClaimPart("b", note="no run on cub")], 0.05
    )
    assert (found.verdict, found.reason, found.decisive) == ("not_run", "no run on cub", None)


def test_a_stricter_level_asks_for_more_evidence():
    assert decide([ClaimPart("a", GOOD)], 0.05).verdict == "supported"
    assert decide([ClaimPart("a", GOOD - 0.7)], 0.05).verdict == "supported"
    assert decide([ClaimPart("a", GOOD - 0.7)], 0.0005).verdict == "inconclusive"


def test_ratios_are_shown_as_ratios():
    part = ClaimPart("a", np.log([2.9, 3.0, 3.1]), low=np.log(2.5), high=np.log(3.5), unit=RATIO)
    tested = part.tested(0.05, own_spread(part))
    assert (tested.estimate, tested.low) == pytest.approx((3.0, 2.5), abs=0.01)
    assert np.isnan(replace(part, high=np.inf).tested(0.05, own_spread(part)).high)
    assert "3.00 [" in tested.text


def test_parts_of_one_label_are_told_apart():
    """Two scopes of one dataset, one of them with its protocol, have parts of one label."""
    same = np.array([1.0, 1.0, 1.0])
    found = decide(
        [ClaimPart("a", NOISE), ClaimPart("a", NOISE.copy()), ClaimPart("a", same)], 0.05
    )
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
