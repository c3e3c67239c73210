"""The sentences that open a page, in the order of the question, counted by hand."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, paper_inputs, roadmap_study, variant, written_page
from made_up_results import made_up_block, made_up_study

from benchmark.report import answer as answers
from benchmark.report.answer import Asked, answer
from benchmark.report.tally import counts

WARM = variant("smooth_ap_tau_0.1", "smooth_ap", tau=0.1)
LOSSES = (*map(variant, ("smooth_ap", "sup_ap", "roadmap", "fast_ap")), WARM)
STUDY = made_up_study(blocks=(made_up_block(LOSSES, (32, 64, 128), (0, 1), setting="r"),))
INPUTS = made_up_inputs(STUDY)
PLACE = {"dataset": "glyphs_1k", "setting": "r", "split": "test", "metric": "recall_at_1"}
FAMILY = "Tests: paired by seed, Holm over the 6 of the ablation."


def asked(**frames: pd.DataFrame) -> Asked:
    return Asked(dataclasses.replace(INPUTS, **frames), "recall_at_1")


def means(*rows: tuple[str, int, str, float]) -> Asked:
    columns = ["setting", "batch_size", "loss", "mean"]
    table = pd.DataFrame(list(rows), columns=columns)
    place = {name: value for name, value in PLACE.items() if name != "setting"}
    return asked(summary=table.assign(**place, selection="last", sd=0.01, n=3))


def compared(
    *rows: tuple[str, int, float, bool], against="smooth_ap", kind="ablation", **columns
) -> pd.DataFrame:
    table = pd.DataFrame(list(rows), columns=["loss", "batch_size", "difference", "significant"])
    spans = {"ci_low": table["difference"] - 0.01, "ci_high": table["difference"] + 0.01}
    facts = {"p_holm": 0.5, "family_size": 6, "lost": "", "against": against, "kind": kind}
    return table.assign(**spans, **PLACE | facts | columns)


def test_a_setting_with_a_single_loss_does_not_count_beside_one_that_compares():
    found = means(
        ("r", 32, "fast_ap", 0.7),
        ("r", 32, "smooth_ap", 0.6),
        ("r", 128, "fast_ap", 0.7988),
        ("r", 128, "smooth_ap_tau_0.1", 0.8208),
        ("r~dim32", 128, "roadmap", 0.9),
    )
    assert answers.highest_means(found) == (
        "The highest mean R@1 on Glyphs-1k · r: FastAP at batch size 32 (70.00 ± 1.00%, n=3) and "
        "SmoothAP (tau=0.1) at batch size 128 (82.08 ± 1.00%, n=3)."
    )


def test_over_two_settings_the_highest_means_are_counted():
    best = [("r", 32, "fast_ap", 0.7), ("s", 32, "smooth_ap", 0.8)]
    worse = [("r", 32, "smooth_ap", 0.6), ("s", 32, "fast_ap", 0.6)]
    assert answers.highest_means(means(*best, *worse)) == (
        "The highest mean R@1: FastAP in 1 and SmoothAP in 1 of 2 conditions."
    )


def test_settings_where_nothing_is_compared_do_not_count():
    found = means(("r", 32, "fast_ap", 0.7), ("r~p8", 32, "fast_ap", 0.6))
    assert "In none of the conditions of 2 settings" in answers.highest_means(found)


def test_more_losses_than_are_named_are_counted():
    names = ("smooth_ap", "sup_ap", "roadmap", "fast_ap", "triplet_semihard")
    best = [(setting, 2**at, name, 0.9) for setting in "rs" for at, name in enumerate(names)]
    worse = [(setting, at, "contrastive", 0.1) for setting, at, *_ in best]
    assert "and 2 other losses in the rest of 10" in answers.highest_means(means(*best, *worse))


@pytest.mark.parametrize(
    ("tests", "words"),
    {
        "as in the embedded study": (
            compared(
                *(("sup_ap", 32, 0.0372, True), ("roadmap", 32, 0.0242, True)),
                *(("sup_ap", 128, 0.01, False), ("roadmap", 128, 0.002, False)),
            ),
            "Do SupAP and ROADMAP beat SmoothAP? At batch size 32 yes (+3.7 and +2.4 points of "
            "R@1), at 128 not shown.",
        ),
        "signs reversed": (
            compared(
                *(("sup_ap", 32, -0.0372, True), ("roadmap", 32, -0.0242, True)),
                *(("sup_ap", 128, -0.01, False), ("roadmap", 128, -0.002, False)),
            ),
            "Do SupAP and ROADMAP beat SmoothAP? At batch size 32 no, lower (−3.7 and −2.4 points "
            "of R@1), at 128 not shown.",
        ),
        "nothing significant": (
            compared(("sup_ap", 32, 0.01, False), ("sup_ap", 128, 0.01, False)),
            "Does SupAP beat SmoothAP? At batch sizes 32 and 128 not shown.",
        ),
        "one condition": (
            compared(("sup_ap", 32, 0.05, True)),
            "Does SupAP beat SmoothAP? At batch size 32 yes (+5.0 points of R@1).",
        ),
        "losses that differ": (
            compared(("sup_ap", 32, 0.05, True), ("roadmap", 32, 0.001, False)),
            "Do SupAP and ROADMAP beat SmoothAP? At batch size 32 SupAP yes (+5.0 points of R@1), "
            "ROADMAP not shown.",
        ),
    }.values(),
)
def test_the_first_sentence_answers_by_batch_size(tests, words):
    place = means(("r", 32, "sup_ap", 0.6), ("r", 128, "sup_ap", 0.7)).inputs.summary
    assert answers.gains(asked(ablation=tests, summary=place)) == f"{words} {FAMILY}"


def test_a_loss_that_diverges_does_not_beat_another():
    place = means(("r", 32, "smooth_ap", 0.6)).inputs.summary
    tests = compared(("sup_ap", 32, 0.05, False), lost="sup_ap")
    found = answers.gains(asked(ablation=tests, summary=place))
    assert found.startswith("Does SupAP beat SmoothAP? At batch size 32 no, it diverges.")


def test_without_an_ablation_the_tests_with_the_baseline_answer():
    place = means(("r", 32, "smooth_ap", 0.6)).inputs.summary
    rows = [(name, 32, 0.01 * at, at > 3) for at, name in enumerate("abcdefgh")]
    tests = compared(*rows, kind="baseline", family_size=8)
    found = answers.gains(asked(ablation=tests.iloc[:0], paired=tests, summary=place))
    assert found == (
        "Does a loss beat SmoothAP? At batch size 32 4 losses yes (+4.0 to +7.0 points of R@1), "
        "4 losses not shown. Tests: paired by seed, Holm over the 8 with the baseline."
    )


def test_over_many_conditions_each_loss_is_counted():
    tests = compared(
        *(("sup_ap", 32, 0.1, True), ("sup_ap", 64, -0.1, True), ("sup_ap", 128, 0.1, True)),
        *(("roadmap", 32, 0.1, False), ("roadmap", 64, 0.1, False)),
    )
    two = means(("r", 32, "sup_ap", 0.6), ("s", 32, "sup_ap", 0.7)).inputs.summary
    found = answers.gains(asked(ablation=tests, summary=two))
    assert "SupAP yes in 2 and no, lower in 1 of 3; 1 loss in none (of 3 conditions)." in found
    none = tests.assign(significant=False)
    found = answers.gains(asked(ablation=none, summary=two))
    assert "Not shown in any of 3 conditions." in found
    one = none[none["batch_size"] == 32]
    found = answers.gains(asked(ablation=one, summary=two))
    assert "Not shown. Tests:" in found


def test_a_step_in_one_condition_is_given_with_its_interval_and_verdict():
    two_places = means(("r", 32, "sup_ap", 0.6), ("s", 32, "sup_ap", 0.7)).inputs.summary
    one = compared(("roadmap", 128, 0.0008, False), against="sup_ap")
    assert answers.last_step(asked(ablation=one, summary=two_places)).endswith(
        "changes R@1 by +0.1 points [−0.9, +1.1] at batch size 128 (not significant)."
    )
    two = pd.concat([one, compared(("roadmap", 32, 0.02, True), against="sup_ap")])
    assert (
        "+0.08 to +2.00 points over 2 conditions, significantly up in 1 and down in 0."
        in answers.last_step(asked(ablation=two, summary=two_places))
    )


def test_what_the_tests_say_comes_before_the_highest_mean_and_what_cannot_be_asked_is_said():
    study = made_up_study()
    first, step, sizes, best = answer(made_up_inputs(study))
    assert first.startswith("Do SupAP and ROADMAP beat SmoothAP? At batch ")
    assert step.startswith("The calibration term (from SupAP to ROADMAP) changes R@1 by ")
    assert sizes.startswith("From batch size 32 to 128 R@1 rises for ")
    assert "These runs cannot test that" in sizes
    assert best.startswith("The highest mean R@1 on Glyphs-1k · r10: ")


def test_each_source_of_noise_is_named_with_its_share_and_interval():
    rows = [("initial weights", 0.414, 0.034, 0.836), ("interaction", 0.466, 0.077, 0.869)]
    table = pd.DataFrame(rows, columns=["source", "share", "low", "high"])
    table = table.assign(**PLACE, batch_size=32, loss="smooth_ap", runs=25)
    found = answers.noise_shares(asked(noise=table))
    assert "over 25 runs of SmoothAP" in found
    assert "initial weights 41% [3, 84] and interaction 47% [8, 87]" in found
    assert answers.noise_shares(asked(noise=table.assign(metric="map"))) == ""


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
    assert answer(dataclasses.replace(paper, verdicts=verdicts)) == [
        "Of 302 published numbers: 298 reproduced, 3 drifted, 1 inconclusive.",
        "Of 2 claims: 1 supported, 1 not run.",
    ]


def test_claims_of_other_papers_are_no_part_of_the_answer(paper):
    claims = paper.claims.assign(paper=["fastap2019", "fastap2019", *paper.claims["paper"][2:]])
    assert "claim" not in answer(dataclasses.replace(paper, claims=claims))[-1]


def test_the_answer_over_many_places_counts_conditions(paper):
    unjudged = {"verdicts": paper.verdicts.iloc[:0], "claims": pd.DataFrame()}
    gains, step, best = answer(dataclasses.replace(paper, **unjudged))
    assert gains.startswith("Do SupAP and ROADMAP beat SmoothAP? ")
    assert "over 9 conditions" in step
    assert best.endswith("SupAP in 9 and SupAP (rho=1000.0) in 1 of 10 conditions.")


def test_claims_that_no_study_can_decide_are_counted_among_those_not_run(paper):
    claims = paper.claims.assign(outside=["", "", "no faces", "no faces"])
    sentences = answer(dataclasses.replace(paper, claims=claims))
    assert sentences[-1].endswith("1 not run (1 of them outside of every study).")


def test_claims_are_counted_as_published(paper):
    assert [count.number for count in counts(paper)[-1][2]] == [1, 0, 0, 1, 0]


def test_the_papers_tables_have_a_section_and_those_without_runs_start_closed(paper, tmp_path):
    study = dataclasses.replace(paper.study, tables=("outside",), figures=())
    page = written_page(dataclasses.replace(paper, study=study), tmp_path)
    run, rest = (
        page.split(f'<section id="{each}"')[1].split("</section>")[0] for each in ("papers", "rest")
    )
    tables = [part.count('id="table-roadmap2021v2_table') for part in (run, rest)]
    assert sum(tables) == 10
    assert all(tables)
    assert "ROADMAP, figure 4" in run
    assert "table 1: average" in run
    assert "table 7: the ablation" in rest


def test_the_page_of_a_papers_study_opens_with_differences_and_closes_what_it_does_not_ask(
    paper, tmp_path
):
    study = dataclasses.replace(paper.study, tables=("comparison",), figures=("verdicts",))
    page = written_page(dataclasses.replace(paper, study=study), tmp_path)
    top = page.split('<section id="papers"')[0]
    results = page.split('<section id="results"')[1]
    assert 'id="figure-verdicts' in top
    assert 'id="table-comparison' not in top
    assert '<details class="closed">' in results.split("</section>")[0]
