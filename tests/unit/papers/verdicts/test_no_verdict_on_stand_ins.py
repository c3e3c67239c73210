"""No published number is asked of a study on a stand-in, whatever it scores."""

from __future__ import annotations

from long_tables import long_table, run_table

from benchmark.papers.verdicts.judge import judge_study
from benchmark.papers.verdicts.records import table_of
from benchmark.papers.verdicts.words import counts, summary_text
from benchmark.study import load_study


def test_every_number_of_a_stand_in_is_not_asked_and_counts_say_nothing_else():
    scores = long_table(
        {"roadmap": 0.9, "fast_ap": 0.9},
        dataset="glyphs_1k",
        setting="test_resnet_stand_in_roadmap",
    )
    table = table_of(judge_study(load_study("roadmap-on-glyphs_1k"), run_table(scores)))
    assert len(table) and set(table["verdict"]) == {"not_asked"}
    assert set(table["reason"]) == {"glyphs_1k is stand-in data"}
    assert list(counts(table)) == ["not_asked"] and "drifted" not in summary_text(table)


def test_counts_of_a_study_on_its_own_data_do_not_mention_it():
    scores = long_table({"roadmap": 0.6}, dataset="cub", setting="resnet50", batch_sizes=(64,))
    table = table_of(judge_study(load_study("roadmap"), run_table(scores)))
    assert list(counts(table)) == ["reproduced", "drifted", "inconclusive", "not_run"]
    assert "not_asked" not in summary_text(table)
