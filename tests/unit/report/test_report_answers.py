"""The sentences on studies of many conditions, counted by hand, and of a paper."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, paper_inputs, roadmap_study, variant, written_page
from made_up_results import made_up_block, made_up_study

from benchmark.report.answer import (
    answer,
    baseline_differences,
    best_losses,
    counts,
    last_step,
    noise_shares,
)

WARM = variant("smooth_ap_tau_0.1", "smooth_ap", tau=0.1)
LOSSES = (*map(variant, ("smooth_ap", "sup_ap", "roadmap", "fast_ap")), WARM)
STUDY = made_up_study(blocks=(made_up_block(LOSSES, (32, 64, 128), (0, 1), setting="r"),))
INPUTS = made_up_inputs(STUDY)


def means(*rows: tuple[str, int, str, float]) -> pd.DataFrame:
    columns = ["setting", "batch_size", "loss", "mean"]
    table = pd.DataFrame(list(rows), columns=columns)
    return table.assign(dataset="glyphs_1k", split="test", metric="recall_at_1", sd=0.01, n=3)


def compared(*rows: tuple[str, int, float, bool], against="smooth_ap") -> pd.DataFrame:
    table = pd.DataFrame(list(rows), columns=["loss", "batch_size", "difference", "significant"])
    table = table.assign(
        ci_low=table["difference"] - 0.01, ci_high=table["difference"] + 0.01, p_holm=0.5
    )
    return table.assign(
        dataset="glyphs_1k", setting="r", split="test", metric="recall_at_1", against=against
    )


def test_a_setting_that_was_run_once_can_be_the_best():
    table = means(
        ("r", 32, "fast_ap", 0.7),
        ("r", 32, "smooth_ap", 0.6),
        ("r", 128, "fast_ap", 0.7988),
        ("r", 128, "smooth_ap_tau_0.1", 0.8208),
        ("r~dim32", 128, "roadmap", 0.9),
    )
    assert best_losses(table, INPUTS, False) == (
        "The highest mean R@1 was reached by FastAP in 1, SmoothAP (tau=0.1) in 1 of 2 conditions "
        "(batch sizes); the highest of all by SmoothAP (tau=0.1) at batch size 128 "
        "(82.08 ± 1.00%, n=3)."
    )


def test_settings_where_nothing_is_compared_do_not_count():
    table = means(("r", 32, "fast_ap", 0.7), ("r~p8", 32, "fast_ap", 0.6))
    assert "In none of the conditions of 2 settings" in best_losses(table, INPUTS, False)


def test_losses_without_a_significant_difference_are_counted_and_not_listed():
    sure = compared(
        ("fast_ap", 32, 0.1, True), ("fast_ap", 64, -0.1, False), ("sup_ap", 32, -0.1, True)
    )
    (found,) = baseline_differences(
        pd.concat([sure, compared(("roadmap", 64, 0.1, False))]), INPUTS, False
    )
    assert (
        "by condition: FastAP (higher in 1 of 2), SupAP (lower); no significant difference in "
        "the other 2" in found
    )
    assert (
        "ROADMAP" not in found
        and "in 0" not in found
        and found.endswith("of 4 comparisons in 2 conditions.")
    )


def test_no_significant_difference_at_all_is_one_plain_statement():
    (found,) = baseline_differences(compared(("fast_ap", 32, 0.1, False)), INPUTS, False)
    assert found == (
        "Against SmoothAP, after Holm's correction, no loss differs significantly in R@1 "
        "(1 comparison in 1 condition)."
    )


def test_a_step_in_one_condition_is_given_with_its_interval_and_verdict():
    one = compared(("roadmap", 128, 0.0008, False), against="sup_ap")
    (found,) = last_step(one, INPUTS, False)
    assert found.endswith(
        "changes R@1 by +0.08 points [−0.92, +1.08] at batch size 128 (not significant)."
    )
    two = pd.concat([one, compared(("roadmap", 32, 0.02, True), against="sup_ap")])
    assert (
        "+0.08 to +2.00 points over 2 conditions, significantly up in 1."
        in last_step(two, INPUTS, False)[0]
    )


def test_each_source_of_noise_is_named_with_its_share_and_interval():
    rows = [("initial weights", 0.414, 0.034, 0.836), ("interaction", 0.466, 0.077, 0.869)]
    table = pd.DataFrame(rows, columns=["source", "share", "low", "high"])
    table = table.assign(
        dataset="glyphs_1k", setting="r", batch_size=32, split="test", metric="recall_at_1",
        loss="smooth_ap", runs=25,
    )  # fmt: skip
    (found,) = noise_shares(dataclasses.replace(INPUTS, noise=table), "recall_at_1")
    assert "over 25 runs of SmoothAP" in found
    assert "initial weights 41% [3, 84] and interaction 47% [8, 87]" in found
    assert noise_shares(dataclasses.replace(INPUTS, noise=table), "map") == []
    assert noise_shares(INPUTS, "map") == []


@pytest.fixture(scope="module")
def paper():
    study = roadmap_study(seeds=(0, 1), sizes=(32, 64, 128))
    claims = pd.DataFrame(
        [
            {"claim": "a", "reading": "published", "verdict": "supported"},
            {"claim": "a", "reading": "here", "verdict": "contradicted"},
            {"claim": "b", "reading": "published", "verdict": "not_run"},
            {"claim": "b", "reading": "here", "verdict": "not_run"},
        ]
    ).assign(paper="roadmap2021v2", stated_in="section 4.1, table 1")
    made = paper_inputs(study, epochs=2)
    return dataclasses.replace(made, claims=claims)


def test_the_answer_of_a_papers_study_goes_by_printed_table(paper):
    verdicts = paper.verdicts.assign(verdict="reproduced", stands=True)
    here = (verdicts["table"] == "table3") & (verdicts["dataset"] == "cub")
    one, two = (verdicts.index[here & (verdicts["loss"] == loss)] for loss in ("sup_ap", "roadmap"))
    columns = ["verdict", "stands", "direction", "difference"]
    verdicts.loc[one, columns] = ["drifted", False, "high", 1.44]
    verdicts.loc[two[0], columns] = ["drifted", True, "low", -2.14]
    verdicts.loc[two[1], "verdict"] = "inconclusive"
    sentences = answer(dataclasses.replace(paper, verdicts=verdicts))
    assert sentences[0] == "Of 302 published numbers: 298 reproduced, 3 drifted, 1 inconclusive."
    assert sentences[1] == (
        "ROADMAP, table 3: 14 of 18 reproduced; ROADMAP on CUB-200-2011 lower by 2.1 points of "
        "R@1, which stands; SupAP on CUB-200-2011 higher by up to 1.4 points of R@1 and mAP@R, "
        "which may not stand; 1 inconclusive."
    )
    assert sentences[2] == "ROADMAP, table 1: 30 of 30 reproduced."
    assert sentences[-1] == "Of 2 claims: 1 supported, 1 not run."
    assert len(sentences) == 2 + verdicts["table"].nunique()


def test_claims_of_other_papers_are_no_part_of_the_answer(paper):
    claims = paper.claims.assign(paper=["fastap2019", "fastap2019", *paper.claims["paper"][2:]])
    assert "claim" not in answer(dataclasses.replace(paper, claims=claims))[-1]


def test_answer_of_many_places_counts_conditions(paper):
    unjudged = {"verdicts": paper.verdicts.iloc[:0], "claims": pd.DataFrame()}
    sentences = answer(dataclasses.replace(paper, **unjudged))
    assert "of 10 conditions (batch sizes of 3 datasets and settings)." in sentences[0]
    assert "SupAP in 9, SupAP (rho=1000.0) in 1 " in sentences[0], (
        "a setting of one condition can win it"
    )
    assert "Significant differences to SmoothAP" in sentences[1] and "in 0" not in sentences[1]


def test_more_losses_than_are_named_are_counted():
    names = ("smooth_ap", "sup_ap", "roadmap", "fast_ap", "triplet_semihard")
    table = means(*(("r", 2**at, name, 0.9) for at, name in enumerate(names)))
    table = pd.concat([table, table.assign(loss="contrastive", mean=0.1)], ignore_index=True)
    assert "and 2 other losses in the rest of 5" in best_losses(table, INPUTS, False)


def test_claims_that_no_study_can_decide_are_counted_among_those_not_run(paper):
    claims = paper.claims.assign(outside=["", "", "no faces", "no faces"])
    sentences = answer(dataclasses.replace(paper, claims=claims))
    assert sentences[-1].endswith("1 not run (1 of them outside of every study).")


def test_answer_of_many_places_ends_with_the_ablation_where_nothing_was_judged(paper):
    unjudged = {"verdicts": paper.verdicts.iloc[:0], "claims": pd.DataFrame()}
    sentences = answer(dataclasses.replace(paper, **unjudged))
    assert len(sentences) == 3 and "over 9 conditions" in sentences[2]


def test_claims_are_counted_as_published(paper):
    assert [count.number for count in counts(paper)[-1][2]] == [1, 0, 0, 1, 0]


def test_the_papers_tables_have_a_section_and_those_without_runs_start_closed(paper, tmp_path):
    study = dataclasses.replace(paper.study, tables=("outside",), figures=())
    page = written_page(dataclasses.replace(paper, study=study), tmp_path)
    run, rest = (
        page.split(f'<section id="{each}"')[1].split("</section>")[0] for each in ("papers", "rest")
    )
    tables = [part.count('id="table-roadmap2021v2_table') for part in (run, rest)]
    assert sum(tables) == 10 and all(tables) and "ROADMAP, figure 4" in run
    assert "table 1: average" in run and "table 7: the ablation" in rest


def test_the_page_of_a_papers_study_opens_with_differences_and_closes_what_it_does_not_ask(
    paper, tmp_path
):
    study = dataclasses.replace(paper.study, tables=("comparison",), figures=("verdicts",))
    page = written_page(dataclasses.replace(paper, study=study), tmp_path)
    top, results = page.split('<section id="papers"')[0], page.split('<section id="results"')[1]
    assert 'id="figure-verdicts' in top and 'id="table-comparison' not in top
    assert '<details class="closed">' in results.split("</section>")[0]
