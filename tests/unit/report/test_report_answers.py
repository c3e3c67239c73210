"""The sentences that open a page, in the order of the question, counted by hand."""

from __future__ import annotations

import dataclasses
import io

import pandas as pd
import pytest
from made_up_inputs import made, made_up_inputs, roadmap_inputs, variant
from made_up_results import made_up_block, made_up_study

from benchmark.report import answer as answers
from benchmark.report.answer import Asked, answer
from benchmark.report.artefacts import Artefact
from benchmark.report.gallery import Gallery
from benchmark.report.page import Built, build_page
from benchmark.report.tally import counts

WARM = variant("smooth_ap_tau_0.1", "smooth_ap", tau=0.1)
LOSSES = (*map(variant, ("smooth_ap", "sup_ap", "roadmap", "fast_ap")), WARM)
STUDY = made_up_study(blocks=(made_up_block(LOSSES, (32, 64, 128), (0, 1), setting="r"),))
INPUTS = made_up_inputs(STUDY)
PLACE = {"dataset": "glyphs_1k", "setting": "r", "split": "test", "metric": "recall_at_1"}
FAMILY_SIZE = "6"  # tests of the ablation


def asked(**frames: pd.DataFrame) -> Asked:
    return Asked(dataclasses.replace(INPUTS, **frames), "recall_at_1")


def table_of(text: str, *columns: str) -> pd.DataFrame:
    """Return the table that is written in lines of words."""
    return pd.read_csv(io.StringIO(text), sep=r"\s+", names=columns)


def means(text: str) -> Asked:
    table = table_of(text, "setting", "batch_size", "loss", "mean")
    place = {name: value for name, value in PLACE.items() if name != "setting"}
    return asked(summary=table.assign(**place, selection="last", sd=0.01, n=3))


def compared(text: str, against="smooth_ap", kind="ablation", **columns) -> pd.DataFrame:
    table = table_of(text, "loss", "batch_size", "difference", "significant")
    spans = {"ci_low": table["difference"] - 0.01, "ci_high": table["difference"] + 0.01}
    facts = {"p_holm": 0.5, "family_size": 6, "lost": "", "against": against, "kind": kind}
    return table.assign(**spans, **PLACE | facts | columns)


def effects(text: str) -> pd.DataFrame:
    """Return tests of batch size 128 against 32, a line for each loss."""
    table = table_of(text, "loss", "difference", "significant")
    spans = {"ci_low": table["difference"] - 0.01, "ci_high": table["difference"] + 0.01}
    return table.assign(batch_size=128, against=32, family_size=len(table), **spans, **PLACE)


def test_a_setting_with_a_single_loss_does_not_count_beside_one_that_compares(messages):
    found = means("""
        r        32   fast_ap            0.7
        r        32   smooth_ap          0.6
        r        128  fast_ap            0.7988
        r        128  smooth_ap_tau_0.1  0.8208
        r~dim32  128  roadmap            0.9
    """)
    text = answers.highest_means(found)
    numbers = messages.told_numbers(text)
    assert "70.00" in numbers
    assert "82.08" in numbers
    assert "90.00" not in numbers
    assert "FastAP at batch size 32" in text


def test_over_two_settings_the_highest_means_are_counted(messages):
    found = means("""
        r  32  fast_ap    0.7
        r  32  smooth_ap  0.6
        s  32  fast_ap    0.6
        s  32  smooth_ap  0.8
    """)
    text = answers.highest_means(found)
    assert messages.told_numbers(text)[-3:] == ["1", "1", "2"]
    assert "FastAP in 1" in text
    assert "SmoothAP in 1" in text


def test_a_rise_and_a_fall_with_the_batch_size_are_told_apart(messages):
    found = asked(
        batch_sizes=effects("""
        fast_ap    0.05   True
        smooth_ap  -0.1   True
        sup_ap     0.01   False
    """)
    )
    text = answers.batch_sizes(found)
    assert "rises for FastAP (+5.0 [+4.0, +6.0])" in text
    assert "falls for SmoothAP (−10.0 [−11.0, −9.0])" in text
    assert "no change is shown for SupAP (+1.0 [+0.0, +2.0])" in text
    assert messages.told_numbers(text)[-1] == "3"


def test_many_losses_have_a_range_and_a_single_run_no_test(messages):
    losses = ("fast_ap", "sup_ap", "roadmap", "smooth_ap")
    many = effects("".join(f"{loss} 0.0{at} True \n" for at, loss in enumerate(losses, 1)))
    text = answers.batch_sizes(asked(batch_sizes=many))
    assert messages.told_numbers(text)[2:] == ["1", "4", "+1.0", "+4.0", "4"]
    alone = effects("fast_ap 0.01 False").assign(family_size=0, ci_low=float("nan"))
    text = answers.batch_sizes(asked(batch_sizes=alone))
    assert "two runs" in text and "Holm" not in text


def test_settings_where_nothing_is_compared_do_not_count(messages):
    found = means("r 32 fast_ap 0.7 \n r~p8 32 fast_ap 0.6")
    assert messages.told_numbers(answers.highest_means(found)) == ["2"]


def test_more_losses_than_are_named_are_counted(messages):
    rows = ""
    for size, loss in enumerate(("smooth_ap", "sup_ap", "roadmap", "fast_ap", "softbin_ap")):
        for setting in "rs":
            rows += f"{setting} {size} {loss} 0.9 \n {setting} {size} contrastive 0.1 \n"
    assert messages.told_numbers(answers.highest_means(means(rows)))[-5:] == [
        "2",
        "2",
        "2",
        "2",
        "10",
    ]


TESTS = {
    "as in the embedded study": """
        sup_ap   32   0.0372  True
        roadmap  32   0.0242  True
        sup_ap   128  0.01    False
        roadmap  128  0.002   False
    """,
    "signs reversed": """
        sup_ap   32   -0.0372  True
        roadmap  32   -0.0242  True
        sup_ap   128  -0.01    False
        roadmap  128  -0.002   False
    """,
    "nothing significant": "sup_ap 32 0.01 False \n sup_ap 128 0.01 False",
    "one condition": "sup_ap 32 0.05 True",
    "losses that differ": "sup_ap 32 0.05 True \n roadmap 32 0.001 False",
}
ANSWERS = {
    "as in the embedded study": "32 +3.7 +2.4 128",
    "signs reversed": "32 −3.7 −2.4 128",
    "nothing significant": "32 128",
    "one condition": "32 +5.0",
    "losses that differ": "32 +5.0",
}
PLACES = "r 32 smooth_ap 0.6 \n r 128 sup_ap 0.7"
TWO_PLACES = means("r 32 sup_ap 0.6 \n s 32 sup_ap 0.7").inputs.summary


@pytest.mark.parametrize("case", TESTS)
def test_the_first_sentence_answers_by_batch_size(case, messages):
    found = asked(ablation=compared(TESTS[case]), summary=means(PLACES).inputs.summary)
    numbers = messages.told_numbers(answers.gains(found))
    differences = [number for number in numbers if number != "1"]  # of R@1
    assert differences == [*ANSWERS[case].split(), FAMILY_SIZE]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"lost": "sup_ap"}, "no, it diverges"),
        ({"lost": "smooth_ap"}, "yes"),
        ({"p_holm": float("nan")}, "not tested"),
        ({"significant": False}, "not shown"),
        ({}, "yes"),
        ({"difference": -0.05}, "no, lower"),
    ],
)
def test_a_test_has_one_outcome(changes, outcome):
    test = compared("sup_ap 32 0.05 True").assign(**changes)
    assert [*answers.with_outcomes(test)["outcome"]] == [outcome]


def test_without_an_ablation_the_tests_with_the_baseline_answer(messages):
    place = means("r 32 smooth_ap 0.6").inputs.summary
    rows = "".join(f"{name} 32 0.0{at} {at > 3} \n" for at, name in enumerate("abcdefgh"))
    tests = compared(rows, kind="baseline", family_size=8)
    text = answers.gains(asked(ablation=tests.iloc[:0], paired=tests, summary=place))
    assert messages.told_numbers(text) == ["32", "4", "+4.0", "+7.0", "1", "4", "8"]


def test_over_many_conditions_each_loss_is_counted(messages):
    tests = compared("""
        sup_ap   32   0.1   True
        sup_ap   64   -0.1  True
        sup_ap   128  0.1   True
        roadmap  32   0.1   False
        roadmap  64   0.1   False
    """)
    found = messages.told_numbers(answers.gains(asked(ablation=tests, summary=TWO_PLACES)))
    assert found == ["2", "1", "3", "1", "3", FAMILY_SIZE]
    none = tests.assign(significant=False)
    found = messages.told_numbers(answers.gains(asked(ablation=none, summary=TWO_PLACES)))
    assert found == ["3", FAMILY_SIZE]
    one = none[none["batch_size"] == 32]
    found = messages.told_numbers(answers.gains(asked(ablation=one, summary=TWO_PLACES)))
    assert found == [FAMILY_SIZE]


def test_a_step_in_one_condition_is_given_with_its_interval_and_verdict(messages):
    one = compared("roadmap 128 0.0008 False", against="sup_ap")
    text = answers.last_step(asked(ablation=one, summary=TWO_PLACES))
    assert messages.told_numbers(text) == ["1", "+0.1", "−0.9", "+1.1", "128"]
    two = pd.concat([one, compared("roadmap 32 0.02 True", against="sup_ap")])
    text = answers.last_step(asked(ablation=two, summary=TWO_PLACES))
    assert messages.told_numbers(text) == ["1", "+0.08", "+2.00", "2", "1", "0"]


def test_what_the_tests_say_comes_before_the_highest_mean_and_what_cannot_be_asked_is_said():
    inputs = made_up_inputs()
    found = Asked(inputs, inputs.headline)
    parts = (answers.gains, answers.last_step, answers.batch_sizes, answers.highest_means)
    assert answer(inputs) == [sentence(found) for sentence in parts]


def test_each_source_of_noise_is_named_with_its_share_and_interval(messages):
    rows = [("initial weights", 0.414, 0.034, 0.836), ("interaction", 0.466, 0.077, 0.869)]
    table = pd.DataFrame(rows, columns=["source", "share", "low", "high"])
    table = table.assign(**PLACE, batch_size=32, loss="smooth_ap", runs=25)
    numbers = messages.told_numbers(answers.noise_shares(asked(noise=table)))
    assert "25" in numbers
    assert numbers[-6:] == ["41", "3", "84", "47", "8", "87"]
    assert answers.noise_shares(asked(noise=table.assign(metric="map"))) == ""


@pytest.fixture(scope="module")
def paper():
    claims = pd.DataFrame(
        [
            {"claim": "a", "reading": "published", "verdict": "supported"},
            {"claim": "a", "reading": "here", "verdict": "contradicted"},
            {"claim": "b", "reading": "published", "verdict": "not_run"},
            {"claim": "b", "reading": "here", "verdict": "not_run"},
        ]
    ).assign(paper="roadmap2021v2", stated_in="section 4.1, table 1", outside="")
    return dataclasses.replace(roadmap_inputs(), claims=claims)


def test_the_answer_of_a_papers_study_counts_numbers_and_claims(paper, messages):
    verdicts = paper.verdicts.assign(verdict="reproduced", stands=True)
    here = (verdicts["table"] == "table3") & (verdicts["dataset"] == "cub")
    one, two = (verdicts.index[here & (verdicts["loss"] == loss)] for loss in ("sup_ap", "roadmap"))
    columns = ["verdict", "stands", "direction", "difference"]
    verdicts.loc[one, columns] = ["drifted", False, "high", 1.44]
    verdicts.loc[two[0], columns] = ["drifted", True, "low", -2.14]
    verdicts.loc[two[1], "verdict"] = "inconclusive"
    numbers, claims = answer(dataclasses.replace(paper, verdicts=verdicts))
    assert messages.told_numbers(numbers) == ["296", "292", "3", "1", "0", "1", "6"]
    assert messages.told_numbers(claims) == ["2", "1", "1"]


def test_claims_of_other_papers_are_no_part_of_the_answer(paper):
    claims = paper.claims.assign(paper=["fastap2019", "fastap2019", *paper.claims["paper"][2:]])
    assert "claim" not in answer(dataclasses.replace(paper, claims=claims))[-1]


def test_the_answer_over_many_places_counts_conditions(paper, messages):
    unjudged = {"verdicts": paper.verdicts.iloc[:0], "claims": pd.DataFrame()}
    gains, step, best = answer(dataclasses.replace(paper, **unjudged))
    assert messages.told_numbers(gains)[-2] == "12"
    assert messages.told_numbers(step)[-3] == "12"
    assert messages.told_numbers(best)[-1] == "12"


def test_claims_that_no_study_can_decide_are_counted_among_those_not_run(paper, messages):
    claims = paper.claims.assign(outside=["", "", "no faces", "no faces"])
    sentences = answer(dataclasses.replace(paper, claims=claims))
    assert messages.told_numbers(sentences[-1])[-2:] == ["1", "1"]


def test_claims_are_counted_as_published(paper):
    assert [count.number for count in counts(paper)[-1][2]] == [1, 0, 0, 1, 0]


@pytest.fixture(scope="module")
def page(paper, tmp_path_factory):
    study = dataclasses.replace(paper.study, tables=("comparison",))
    inputs = dataclasses.replace(paper, study=study)
    shown = [*made("table", inputs, tmp_path_factory.mktemp("tables")).values()]
    for name, group in (("verdicts", "study"), ("roadmap2021v2_fig4", "paper")):
        element = f'<svg id="figure-{name}"></svg>'
        shown.append(Artefact("figure", name, name, group, element=element))
    return build_page(inputs, Built(shown, Gallery([], "none")))


def test_the_papers_tables_have_a_section_and_those_without_runs_start_closed(page):
    table = 'id="table-roadmap2021v2_table'
    run = page.split('<section id="papers"')[1].split("</section>")[0]
    rest = page.split('<section id="rest"')[1].split("</section>")[0]
    assert run.count(table) + rest.count(table) == 10
    assert f"{table}1" in run
    assert f"{table}7" in rest
    assert 'id="figure-roadmap2021v2_fig4' in run


def test_the_page_of_a_papers_study_opens_with_differences_and_closes_what_it_does_not_ask(page):
    top = page.split('<section id="papers"')[0]
    results = page.split('<section id="results"')[1]
    assert 'id="figure-verdicts' in top
    assert 'id="table-comparison' not in top
    assert '<details class="closed">' in results.split("</section>")[0]
