"""Verdicts on what few runs make hard: coincidences, pairs, divergence, families, sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_results import candidates_of, long_table, run_table, without_number

from benchmark.papers.judging import freeze, judge_frozen, judge_numbers, load_frozen
from benchmark.papers.paper import asked_numbers
from benchmark.papers.verdicts import table_of
from benchmark.papers.vocabulary import margin_of
from benchmark.stats.samples import Samples

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
    verdicts = judge_numbers(asked_numbers(published), samples, candidates_of(runs))
    return table_of(verdicts + judge_frozen(frozen or {}, samples))


def row(table, loss="fast_ap", metric="recall_at_1", backbone="resnet50"):
    return table.query(
        "dataset == 'cub' and loss == @loss and metric == @metric and backbone == @backbone"
    ).iloc[0]


@pytest.fixture
def frozen_of(tmp_path):
    def make(runs):
        freeze(run_table(runs), tmp_path / "frozen.csv")
        return load_frozen(tmp_path / "frozen.csv")

    return make


def two_seeds(values, loss="smooth_ap"):
    """Return runs whose R@1 are given by seed."""
    runs = long_table({loss: 0.5}, seeds=len(values), metrics=("recall_at_1",))
    return runs.assign(value=runs["seed"].map(dict(enumerate(values))))


def test_differences_that_happen_to_be_equal_are_no_exact_value(frozen_of):
    table = judged(two_seeds([0.685, 0.695]), (), frozen_of(two_seeds([0.700, 0.710])))
    assert (table["difference"].iloc[0], table["paired_n"].iloc[0]) == (pytest.approx(-1.5), 2)
    assert table["verdict"].iloc[0] != "drifted"


def test_one_score_more_or_less_than_frozen_is_paired_over_the_common_seeds(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, sd=0.05, seeds=6)
    now = runs.assign(value=runs["value"] + 1e-5 * (runs["seed"] % 3))
    for some in (now[now["seed"] < 5], now):
        table = judged(some, (), frozen_of(runs[runs["seed"] > 0]))
        assert set(table["verdict"]) == {"reproduced"}
        assert set(table["paired_n"]) == {some["seed"].nunique() - 1}


def test_divergence_against_frozen_runs_is_an_outcome(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, metrics=("recall_at_1",))
    four = without_number(runs, "loss == 'sup_ap' and seed > 0", "diverged")
    lost = judged(four, (), frozen_of(runs)).set_index("loss").loc["sup_ap"]
    assert (lost["verdict"], lost["direction"]) == ("drifted", "low")
    assert lost["reason"] == "4 of 5 runs of ours diverged, 0 of 5 runs of the frozen ones"
    won = judged(runs, (), frozen_of(four)).set_index("loss").loc["sup_ap"]
    assert (won["verdict"], won["direction"]) == ("drifted", "high")


def test_a_frozen_cell_without_any_score_has_a_row(frozen_of):
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, metrics=("recall_at_1",))
    none = without_number(runs, "loss == 'sup_ap'", "diverged")
    for now, verdict in ((none, "reproduced"), (runs, "drifted")):
        found = judged(now, (), frozen_of(none)).set_index("loss").loc["sup_ap"]
        assert found["verdict"] == verdict


def test_the_family_is_that_of_the_plan_so_that_no_result_is_lost_later():
    means = {"fast_ap": 0.6128, "roadmap": 0.63}
    early = judged(without_number(cub(means), "loss == 'roadmap'", "missing"))
    assert row(early)["family_size"] == 2
    assert row(early)["p_holm"] >= row(judged(cub(means)))["p_holm"]


def test_reasons_say_where_the_interval_lies():
    runs = cub({"fast_ap": 0.6, "roadmap": 0.63}, seeds=3, sd=0.012, batch_sizes=(64,))
    found = [row(judged(runs, ["roadmap2021v2/table1"]))]
    found += [row(judged(cub({"fast_ap": mean}, sd=0.02, seeds=3))) for mean in (0.613, 0.63)]
    for each in found:
        low, high, margin = each["ci_low"], each["ci_high"], each["margin"]
        outside, around = low > margin or high < -margin, low < -margin and high > margin
        word = "lies beyond" if outside else "contains" if around else "crosses"
        assert each["verdict"] == "inconclusive" and word in each["reason"]


def test_finished_runs_without_a_finite_score_are_named():
    runs = cub({"fast_ap": 0.6128})
    runs.loc[runs["seed"] == 2, "value"] = np.nan
    assert "1 of the finished runs without a finite score" in row(judged(runs))["reason"]


def test_the_margin_is_that_of_the_metric_and_of_the_references_height():
    found = [margin_of("recall_at_1", score) for score in (62, 84.9, 85, 98)]
    assert found == [1.0, 1.0, 0.7, 0.4]
    assert margin_of("map_at_r", 98) == 0.5 and margin_of("ndcg", 5) is None
    frozen = [
        row(judged(cub({"fast_ap": 0.6128})), metric=name) for name in ("map_at_r", "recall_at_1")
    ]
    assert [each["margin"] for each in frozen] == [0.5, 1.0]


def test_cells_share_their_spread_and_the_plain_test_stays_beside():
    losses = {f"loss_{number}": 0.5 for number in range(12)}
    samples = Samples(run_table(long_table(losses, seeds=3)))
    cell = next(iter(samples.statuses))
    found = samples.spread(cell, "test", "recall_at_1")
    assert (found.own_df, found.df, found.lent_df) == (2, 6, 4)
    assert found.sd**2 == pytest.approx((4 * found.lent**2 + 2 * found.own**2) / 6)
    assert found.plain.sd == found.own
    assert samples.spread(cell, "test", "map").df == 0


def test_a_verdict_that_an_assumption_turns_is_marked():
    table = judged(cub({"fast_ap": 0.6128, "roadmap": 0.6418}, seeds=3, sd=0.004))
    tested = table[table["p_drift"].notna()]
    assert tested["stands"].isin([True, False]).all()
    assert ((tested["changes_under"] == "") == tested["stands"]).all()
    assert table[table["p_drift"].isna()]["stands"].isna().all()
