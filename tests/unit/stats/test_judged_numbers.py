"""Judging a number from its figures alone: verdicts, what would decide them, and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from benchmark.core.errors import ConfigError
from benchmark.metrics.metric import metric_named
from benchmark.report.judged_number import as_text
from benchmark.stats.judgement import (
    GIVEN,
    OWN,
    PUBLISHED,
    half_of_last_digit,
    judge,
    question,
)
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, UNDECIDED, UNTESTED


def asked(ours="62.4", published="65.9", **options):
    options = {"default_margin": lambda metric, score: 1.0, **options}
    texts = [ours] if isinstance(ours, str) else ours
    return question(ours=texts, published=published, **options)


def problems(*args, **options):
    with pytest.raises(ConfigError) as caught:
        asked(*args, **options)
    return [str(problem) for problem in caught.value.problems]


def test_a_known_spread_gives_the_normal_test_with_rounding():
    found = judge(asked(spread="0.3"))
    se = 0.3 * np.sqrt(2)
    assert found["verdict"] == DRIFTED
    assert found["spread"]["from"] == GIVEN
    assert found["stands"]
    assert found["test"]["p_drift"] == pytest.approx(
        stats.norm.sf((3.5 - 1.05) / se) + stats.norm.sf((3.5 + 1.05) / se)
    )
    assert found["test"]["low"] == pytest.approx(-3.5 - stats.norm.isf(0.05) * se - 0.05)


def test_several_runs_bring_their_own_spread_and_few_degrees_of_freedom():
    found = judge(asked(["70.1", "70.6", "70.3"], "70.4"))
    assert found["spread"]["from"] == OWN
    assert (found["spread"]["of_one_run"], found["test"]["df"]) == (
        pytest.approx(np.std([70.1, 70.6, 70.3], ddof=1)),
        2,
    )


def test_equal_runs_are_no_exact_value():
    assert judge(asked(["70.1", "70.1"], "70.1"))["verdict"] == UNTESTED
    assert (
        judge(asked(["70.1", "70.1"], "75", published_spread="0.2"))["spread"]["from"] == PUBLISHED
    )


@pytest.mark.parametrize("ours", [["61.8"] * 3, ["70", "70.0"]])
def test_equal_runs_are_not_asked_for_again(ours):
    text = as_text(judge(asked(ours, "62.0")))
    assert "the values of --ours are equal" in text
    assert "several --ours" not in text
    assert "several --ours" in as_text(judge(asked("61.8", "62.0")))


@pytest.mark.parametrize(
    ("ours", "published"), [("0.9%", "1.1"), ("1 %", "0.7%"), ("62.4%", "65.9%")]
)
def test_a_score_of_less_than_a_percent_is_judged_when_it_says_so(ours, published):
    percent = asked(ours, published, spread="0.1")
    plain = published.removesuffix("%")
    assert percent.ours == (float(ours.rstrip("% ")),)
    assert (percent.published, percent.rounding) == (float(plain), half_of_last_digit(plain))


@pytest.mark.parametrize("score", ["0.9", "1", "0.01"])
def test_a_fraction_is_told_how_it_would_be_a_percentage(score):
    (problem,) = problems([score], "65.9", spread="0.3")
    assert f"write {100 * float(score):g}, or {score}% if it is that low" in problem


def test_the_p_of_each_test_stands_beside_the_name_of_the_test():
    found = judge(asked(spread="0.3"))
    text = as_text(found)
    assert f"of equivalence: p = {found['test']['p_equivalence']:.2g}; of a drift: p = " in text
    assert "against '" not in text


def test_a_published_spread_stands_for_both_sides_where_we_have_one_run():
    found = judge(asked("70.0", "71.4", published_spread="0.2", published_n="5"))
    assert found["spread"]["from"] == PUBLISHED
    assert found["test"]["df"] == 4
    assert found["test"]["se"] == pytest.approx(0.2 * np.sqrt(1 + 1 / 5))


def test_one_run_without_any_spread_gets_the_spread_up_to_which_it_would_be_decided():
    found = judge(asked("71.7", "80.7"))
    assert found["verdict"] == UNTESTED
    limit = found["largest_spread"][DRIFTED]
    assert judge(asked("71.7", "80.7", spread=f"{limit * 0.99}"))["verdict"] == DRIFTED
    assert judge(asked("71.7", "80.7", spread=f"{limit * 1.01}"))["verdict"] == UNDECIDED
    assert "give --spread" in as_text(found)


def test_the_runs_that_would_decide_do_decide():
    found = judge(asked("70.0", "71.4", published_spread="0.2"))
    runs = found["would_decide"]["runs"]
    assert judge(asked("70.0", "71.4", published_spread="0.2", n=str(runs)))["verdict"] == DRIFTED
    fewer = asked("70.0", "71.4", published_spread="0.2", n=str(runs - 1))
    assert judge(fewer)["verdict"] == UNDECIDED


def test_an_uncertain_published_value_needs_runs_of_its_own():
    found = judge(asked("80.7", "81.4", published_spread="0.2"))
    assert found["would_decide"]["runs"] is None
    more = asked(
        "80.7",
        "81.4",
        spread="0.2",
        published_n=str(found["would_decide"]["reference_runs"]),
        n=str(found["would_decide"]["runs_with"]),
    )
    assert judge(more)["verdict"] == REPRODUCED


def test_the_text_says_whose_spread_it_is_and_what_decides():
    drift = as_text(judge(asked("70.0", "75.0", published_spread="0.2", published_n="5")))
    assert drift.startswith("drifted low: ")
    assert "published     75 (5 runs)" in drift
    assert "; 0.2 as published on their side" in drift
    assert "makes no sense for a mean of several runs" in drift
    assert "drifted up to a spread of" in drift
    open_ = as_text(judge(asked(["70.0", "70.9"], "70.4", published_n="5")))
    assert "of ours, if difference and spread stay as they are" in open_
    assert "reproduced up to a spread of" in open_
    at_margin = as_text(judge(asked("70.0", "71.0", spread="0.2")))
    assert "no spread decides, the difference is the margin" in at_margin
    assert "too close to the margin" in at_margin
    assert "too uncertain" not in at_margin


def test_a_larger_family_needs_stronger_evidence():
    assert judge(asked("70.0", "72.0", spread="0.3"))["verdict"] == DRIFTED
    assert judge(asked("70.0", "72.0", spread="0.3", family="30"))["verdict"] == UNDECIDED


def test_json_has_only_plain_numbers():
    for options in ({}, {"spread": "0.3"}, {"spread": "0.3", "published_n": "5"}):
        found = json.loads(json.dumps(judge(asked(**options)), allow_nan=False))
        assert found["difference"] == pytest.approx(-3.5)
    assert found["sensitivity"]["best_of_3"]["applies"] is False


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("65.9", 0.05),
        ("66", 0.5),
        ("65.90", 0.005),
        ("6.59e1", 0.05),
        ("7e1", 5),
    ],
)
def test_rounding_is_half_of_the_last_printed_digit(text, half):
    assert half_of_last_digit(text) == pytest.approx(half)


def test_all_mistakes_are_told_at_once():
    found = problems(
        ["0.624", "62,4"],
        "71.4±0.2",
        n="x",
        spread="0",
        published_spread="nan",
        published_n="0",
        metric="accuracy",
        family="1.5",
        unexpected=["61.0"],
    )
    assert len(found) == 10
    for word in ("fraction", "decimal sign", "spread has an option", "--n", "--spread: 0 must"):
        assert any(word in each for each in found), word


def test_what_is_missing_or_contradicts_the_values_is_named():
    found = problems([], None)
    assert ["--ours is missing" in each for each in found] == [True, False]
    assert "--published is missing" in found[1]
    assert "2 values" in problems(["62.4", "62.9"], n="5")[0]
    assert asked("62.4", n="5").n == 5


@pytest.mark.parametrize(
    "score", ["-3", "101", "inf", "1e999", "62.4 %%", "%", "", " ", "0e999", "٦٢"]
)
def test_what_is_no_score_is_refused(score):
    assert len(problems(score)) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("R@1", "recall_at_1"),
        (" r@10 ", "recall_at_10"),
        ("Recall@4", "recall_at_4"),
        ("RECALL_AT_1", "recall_at_1"),
        ("mAP@R", "map_at_r"),
        ("MAP", "map"),
        ("R@0", "R@0"),
        ("mAP@5", "mAP@5"),
    ],
)
def test_metrics_may_be_written_as_tables_show_them(text, name):
    assert metric_named(text) == name
    if name == text:
        (problem,) = problems(metric=text)
        assert f"unknown metric '{text}'" in problem
    else:
        assert asked(metric=text, default_margin=lambda metric, score: len(metric)).margin == len(
            name
        )


def test_the_margin_given_goes_before_the_metrics():
    assert asked(margin="2.5", metric="recall_at_1").margin == 2.5
