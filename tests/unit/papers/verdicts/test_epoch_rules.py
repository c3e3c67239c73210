"""The epoch at which a paper's numbers are judged, and the other reading of it."""

from __future__ import annotations

import pytest
from made_up_results import long_table, run_table

from benchmark.papers.judging import judge_study, rule_of
from benchmark.papers.paper import asked_numbers, load_papers
from benchmark.papers.verdicts import table_of
from benchmark.study import load_study

RULES = {
    "roadmap2021v2": ("one_best", "last"),
    "fastap2019": ("last", "best"),
    "smoothap2020": ("last", "best"),
    "listwise2019": ("last", "best"),
}


@pytest.mark.parametrize("source", RULES)
def test_each_paper_has_its_rule_and_another_reading(source):
    number = asked_numbers([source])[0]
    assert (rule_of(number, "paper"), rule_of(number, "other")) == RULES[source]
    assert rule_of(number, "best") == "best"


def test_a_rule_has_a_source_and_a_paper_without_one_does_not_say():
    stated = {key: paper.about.epoch for key, paper in load_papers().items()}
    assert stated["roadmap2021"].why and stated["fastap2019"].why
    assert stated["smoothap2020"] is None and stated["listwise2019"] is None


def test_verdicts_of_a_study_are_at_the_epoch_of_its_paper():
    study = load_study("roadmap")
    runs = run_table(
        long_table(
            {"roadmap": 0.6, "fast_ap": 0.6}, dataset="cub", setting="resnet50", batch_sizes=(64,)
        )
    )
    for selection, rule in (("paper", "one_best"), ("other", "last"), ("last", "last")):
        table = table_of(judge_study(study, runs, selection))
        assert set(table["selection"]) == {rule}
