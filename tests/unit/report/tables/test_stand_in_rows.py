"""A stand-in's runs take the place of rows whose data a study could have, and of no others."""

from __future__ import annotations

from benchmark.papers.references import published_results
from benchmark.papers.verdicts.facts import study_facts
from benchmark.report.tables.papers.stand_in import stand_in_cell
from benchmark.study import load_study

CELLS = [("glyphs_1k", "test_resnet", loss, loss, 128) for loss in ("softbin_ap", "smooth_ap")]


def filled(paper: str, dataset: str) -> set[bool]:
    facts = study_facts(load_study("listwise"))
    rows = published_results().query(
        "paper == @paper and dataset == @dataset and provenance != 'copied' and score"
    )
    return {
        stand_in_cell(row, "glyphs_1k", CELLS, facts) is not None for row in rows.to_dict("records")
    }


def test_rows_of_datasets_that_a_study_has_are_filled():
    assert True in filled("listwise2019", "roxford5k")


def test_rows_of_data_that_no_study_has_stay_without_runs():
    assert filled("listwise2019", "roxford_1m") == filled("listwise2019", "rparis_1m") == {False}
    assert filled("smoothap2020", "ijbc") == filled("smoothap2020", "vggface2") == {False}
