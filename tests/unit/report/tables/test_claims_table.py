"""The table of the papers' claims: both readings, and what no run can decide."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import printed_inputs
from made_up_results import made_up_runs, made_up_study, run_table

from benchmark.papers.claim_verdicts import judge_claims
from benchmark.papers.matching import candidates
from benchmark.papers.paper import claims_of
from benchmark.papers.printed import Printed
from benchmark.report.render import to_csv
from benchmark.report.table import NothingToShow
from benchmark.report.tables.references import claims as claims_table
from benchmark.study.model import References

STUDY = made_up_study()


@pytest.fixture(scope="module")
def claims():
    return judge_claims(run_table(made_up_runs(STUDY)), claims_of(), candidates(STUDY))[0]


def table_of(claims, study=STUDY):
    return claims_table(printed_inputs(study, Printed(), claims))


def row_of(table, words):
    rows = [row for section in table.sections for row in section.rows]
    return next(row for row in rows if words in row[0].text)


def test_the_table_shows_both_readings_and_counts_what_cannot_be_tested(claims):
    published = claims["reading"] == "published"
    first = claims[published & (claims["claim"] == "calibration_adds_to_sup_ap")].index[0]
    claims = claims.copy()
    claims.loc[first, "verdict"] = "inconclusive"
    shown = table_of(claims)
    headers = {column.header[0] for column in shown.columns}
    assert {"As published", "As far as it was run here"} <= headers
    tested = claims[claims["verdict"] != "not_run"]["claim"].nunique()
    assert shown.rows == tested
    assert f"{len(claims_of()) - tested} further claims cannot be tested" in shown.notes[0]
    row = row_of(shown, "SupAP is better than")
    assert [row[2].text, row[6].text] == ["not run", "not asked"]


def test_the_table_has_one_reading_where_nothing_was_run_as_published(claims):
    shown = table_of(claims)
    assert "As published" not in {column.header[0] for column in shown.columns}
    assert "nothing is tested as published" in shown.notes[0]
    row = row_of(shown, "SupAP is better than")
    assert row[2].text == "not asked"
    assert [line.text for line in row[0].lines] == ["sup_ap_beats_smooth_ap"]
    assert "What the paper says,What the paper says name,Its condition" in to_csv(shown)
    assert "explain NAME --study made_up" in shown.caption


def test_a_claim_that_no_run_can_decide_says_why_where_its_paper_is_covered(claims):
    one = claims[claims["claim"] == "sup_ap_beats_smooth_ap"].assign(
        outside="Faces are not to be had"
    )
    study = dataclasses.replace(STUDY, references=References(("roadmap2021v2/table1",), None))
    shown = table_of(one, study)
    assert "not run as published: Faces are not to be had" in shown.sections[0].rows[0][-1].text
    note = (
        "No run of the suite can decide 1 claim of its papers as published. "
        "Faces are not to be had."
    )
    assert note in shown.notes
    assert note not in table_of(one).notes


def test_the_table_says_when_there_is_nothing_to_show(claims):
    with pytest.raises(NothingToShow, match="claims made_up"):
        table_of(pd.DataFrame())
    with pytest.raises(NothingToShow, match="bears on"):
        table_of(claims.assign(verdict="not_run"))


def test_a_note_says_how_many_claims_luck_alone_would_contradict(claims):
    assert "luck alone" not in " ".join(table_of(claims).notes), "on a stand-in none is asked"
    here = claims["reading"] == "here"
    claims = claims.assign(p_contradicted=claims["p"].where(here))
    judged = claims["p_contradicted"].notna().sum()
    assert judged > 10
    notes = " ".join(table_of(claims).notes)
    assert f"{judged} tested claims" in notes and f"contradict {0.05 * judged:.1f};" in notes
