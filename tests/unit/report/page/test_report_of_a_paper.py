from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import paper_inputs, roadmap_study, written_page

from benchmark.report.answer import answer, counts


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


def test_answer_of_a_study_of_many_places_counts_conditions_and_verdicts(paper):
    sentences = answer(paper)
    numbers = paper.verdicts["verdict"].value_counts()
    assert (
        sentences[0].startswith("Of 286 published numbers:")
        and f"{numbers['not_run']} not run" in sentences[0]
    )
    assert sentences[0].endswith("; of 2 claims: 1 supported, 1 not run.")
    assert "of 10 conditions (batch sizes of 3 datasets and settings)." in sentences[1]
    assert "SupAP in 9, SupAP (rho=1000.0) in 1 " in sentences[1], (
        "a setting of one condition can win it"
    )
    assert "Significant differences to SmoothAP" in sentences[2] and "in 0" not in sentences[2]
    assert "over 9 conditions" in sentences[3] and len(sentences) == 4


def test_claims_that_no_study_can_decide_are_counted_among_those_not_run(paper):
    claims = paper.claims.assign(outside=["", "", "no faces", "no faces"])
    sentences = answer(dataclasses.replace(paper, claims=claims))
    assert sentences[0].endswith("1 not run (1 of them outside of every study).")


def test_answer_of_many_places_ends_with_the_ablation_where_nothing_was_judged(paper):
    unjudged = {"verdicts": paper.verdicts.iloc[:0], "claims": pd.DataFrame()}
    sentences = answer(dataclasses.replace(paper, **unjudged))
    assert len(sentences) == 3 and "over 9 conditions" in sentences[2]


def test_claims_are_counted_as_published(paper):
    assert [count.number for count in counts(paper)[-1][2]] == [1, 0, 0, 1, 0]


def test_the_papers_tables_have_a_section_and_those_without_runs_start_closed(paper, tmp_path):
    study = dataclasses.replace(paper.study, tables=("outside",), figures=())
    page = written_page(dataclasses.replace(paper, study=study), tmp_path)
    section = page.split('<section id="papers"')[1].split("</section>")[0]
    assert section.count('id="table-roadmap2021v2_table') == 10 and "ROADMAP, figure 4" in section
    closed = section.split('<div class="item')
    assert "<details>" in next(part for part in closed if "table 7: the ablation" in part)
    assert "<details>" not in next(part for part in closed if "table 1: average" in part)
