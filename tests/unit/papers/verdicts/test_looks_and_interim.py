"""Verdicts of a study that looks several times: a stricter level, and interim ones between."""

from __future__ import annotations

from made_up_results import candidates_of, long_table, run_table, without_number

from benchmark.papers.judging import judge_numbers
from benchmark.papers.paper import asked_numbers
from benchmark.papers.verdicts import explain, summary_text, table_of
from benchmark.stats.planning import pocock
from benchmark.stats.samples import Samples

LEVEL = pocock((3, 5, 10))


def judged(runs, level=0.05):
    runs = run_table(runs), runs
    numbers = asked_numbers(("roadmap2021v2/table5",))
    return judge_numbers(numbers, Samples(runs[0]), candidates_of(runs[1]), level)


def cub(mean, **options):
    place = {"dataset": "cub", "setting": "resnet50", "batch_sizes": (128,)}
    return long_table({"fast_ap": mean}, metrics=("recall_at_1",), **place, **options)


def measured(verdicts):
    return next(each for each in verdicts if each.ours_n)


def test_a_look_among_several_tests_at_a_stricter_level_with_a_wider_interval():
    runs = cub(0.618, sd=0.002)
    alone, among = (measured(judged(runs, level)) for level in (0.05, LEVEL))
    assert (alone.level, among.level) == (0.05, LEVEL)
    assert among.test.low < alone.test.low and among.test.high > alone.test.high
    assert among.test.p_drift == alone.test.p_drift
    drifts = [mean for mean in (0.56, 0.57, 0.575, 0.58, 0.585, 0.59, 0.6)]
    words = [
        [measured(judged(cub(mean, sd=0.004), level)).verdict for mean in drifts]
        for level in (0.05, 1e-4)
    ]
    assert words[0].count("drifted") > words[1].count("drifted")


def test_the_rule_of_a_text_is_that_of_its_level():
    runs = cub(0.618, sd=0.002)
    verdicts = judged(runs, LEVEL)
    text = summary_text(table_of(verdicts))
    assert "95.5% interval" in text and "at 2.25% after Holm" in text and "several looks" in text
    told = explain(measured(verdicts), verdicts, run_table(runs))
    assert "each at 2.25%" in told and "95.5% interval" in told


def test_a_verdict_before_all_seeds_of_the_look_have_ended_says_that_it_is_interim():
    for mean in (0.618, 0.4):
        complete = cub(mean, sd=0.001)
        partly = without_number(complete, "seed >= 3", "missing")
        whole, interim = (table_of(judged(runs)) for runs in (complete, partly))
        assert not whole["interim"].any() and interim["interim"].sum() == 1
        row = interim[interim["interim"]].iloc[0]
        assert row["reason"].startswith("interim, 3 of 5 seeds so far: ")
        text = summary_text(interim)
        assert "interim: 1 of them, whose runs have not all ended" in text
        assert "interim" not in summary_text(whole)


def test_diverged_runs_have_ended():
    runs = without_number(cub(0.618), "seed == 4", "diverged")
    assert not table_of(judged(runs))["interim"].any()


def test_a_number_without_any_finished_run_is_not_run_and_not_interim():
    runs = without_number(cub(0.618), "seed >= 0", "missing")
    table = table_of(judged(runs))
    assert not table["interim"].any() and set(table["verdict"]) == {"not_run"}
