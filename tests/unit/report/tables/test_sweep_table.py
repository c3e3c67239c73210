"""The table of the sweeps, the sentence on them, and their place on the page."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, sweep_study
from made_up_results import made_up_runs, made_up_study
from scipy import stats

from benchmark.report.answer import answer
from benchmark.report.artefacts import Artefact
from benchmark.report.gallery import Gallery
from benchmark.report.page import Built, build_page
from benchmark.report.render import to_csv
from benchmark.report.tables.printed_tables import paper_tables
from benchmark.stats.intervals import holm
from benchmark.stats.samples import moderate

STUDY = sweep_study((0, 1, 2))
CLAIM = {
    "claim": "fast_ap_bins_hardly_matter",
    "verdict": "contradicted",
    "paper": "fastap2019",
    "stated_in": "section 5.3",
    "outside": "",
}
CLAIMS = pd.DataFrame(
    [{**CLAIM, "reading": "here"}, {**CLAIM, "reading": "published", "verdict": "not_run"}]
)


@pytest.fixture(scope="module")
def inputs():
    """Return results in which 20 bins are 10 points worse and options make no difference."""
    runs = made_up_runs(STUDY, epochs=2)
    runs.loc[(runs["loss"] == "fast_ap_bins_20") & (runs["metric"] == "recall_at_1"), "value"] -= (
        0.1
    )
    made = made_up_inputs(STUDY, runs=runs)
    return dataclasses.replace(made, claims=CLAIMS)


@pytest.fixture(scope="module")
def table(inputs):
    return next(part.make() for part in paper_tables(inputs) if part.name == "sweeps")


def last(inputs, loss: str, metric: str) -> np.ndarray:
    runs = inputs.scores[inputs.scores["metric"] == metric]
    found = runs[
        (runs["loss"] == loss) & (runs["batch_size"] == 128) & (runs["setting"] == "test_resnet")
    ]
    return found.sort_values("seed")["value"].to_numpy(float)


def test_each_swept_setting_is_tested_against_the_default_of_its_sweep(inputs, table):
    section = next(each for each in table.sections if each.title.startswith("FastAP's bins"))
    assert section.title == "FastAP's bins (histogram bins) · R@1 · batch size 128"
    assert [row[0].text for row in section.rows] == ["5", "10", "20"]
    assert section.rows[1][2].text == "default"
    ours = {
        count: last(inputs, f"fast_ap{suffix}", "recall_at_1")
        for count, suffix in ((5, "_bins_5"), (20, "_bins_20"))
    }
    plain = last(inputs, "fast_ap", "recall_at_1")
    differences = np.array([ours[count] - plain for count in (5, 20)])
    shared = moderate(differences.var(axis=1, ddof=1), 2)
    t = differences.mean(axis=1) / np.sqrt(shared.variance / 3)
    p = holm(2 * stats.t.sf(np.abs(t), shared.df))
    few, _, many = section.rows
    assert few[2].numbers[0] == pytest.approx((ours[5] - plain).mean())
    assert few[5].numbers[0] == pytest.approx(p[0])
    assert many[1].numbers == pytest.approx((ours[20].mean(), ours[20].std(ddof=1), 3))
    assert many[4].text == "lower"
    assert many[5].numbers[0] == pytest.approx(p[1])
    assert few[-2].text == "fast_ap_bins_hardly_matter: contradicted", (
        "the reading of the paper's data is another"
    )


def test_batch_sizes_and_samplings_are_compared_with_the_default_that_the_sweep_names(table):
    rows = {each.title: {row[0].text: row[2].text for row in each.rows} for each in table.sections}
    sampling = rows["sampling · R@1 · batch size 64"]
    assert sampling["random classes"] == "default"
    assert sampling["pairs of categories"] != "default"
    assert rows["FastAP's batch size · R@1"]["128"] == "default"
    assert (
        rows["images per class (images of a class in a batch) · mAP · batch size 128"]["4"]
        == "default"
    )
    assert set(rows) == {row for row in rows if "SupAP" not in row}, "what was not run is left out"


def test_the_csv_has_the_numbers_in_full(table):
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert {
        "section",
        "Value",
        "Value of option",
        "Score mean",
        "Score sd",
        "Score n",
        "Difference difference",
    } <= set(rows[0])
    assert [row["Difference note"] for row in rows].count("default") == len(table.sections)


def test_other_studies_have_no_such_table_and_no_such_sentence():
    other = made_up_study()
    made = made_up_inputs(other)
    assert list(paper_tables(made)) == []
    assert not [sentence for sentence in answer(made) if "sweep" in sentence]


def test_without_its_default_a_sweep_has_scores_and_no_test(inputs):
    runs = made_up_runs(STUDY, epochs=1)
    made = made_up_inputs(STUDY, runs=runs[runs["loss"] != "fast_ap"])
    found = made.printed.sweeps.query('title == "FastAP\'s bins"')
    assert found["value"].tolist() == ["5", "20"]
    assert found["p_holm"].isna().all()
    assert not found["significant"].any()


def test_a_setting_whose_runs_are_those_of_the_default_says_so(table):
    section = next(each for each in table.sections if each.title.startswith("images per class"))
    assert section.rows[1][2].note == "identical runs, no test"
    assert section.rows[1][4].text == "no test"


def test_one_seed_gives_no_test_and_the_sentence_says_so():
    made = made_up_inputs(sweep_study((0,)))
    assert "No sweep could be tested" in answer(made)[0]


def test_the_answer_to_a_study_of_sweeps_begins_with_the_claims_and_the_sweeps(inputs, messages):
    claims, swept, gains, best = answer(inputs)
    assert messages.told_numbers(claims) == ["1", "1"]
    assert messages.told_numbers(swept)[:4] == ["2", "2", "20", "−10.13"]
    assert messages.told_numbers(gains)[0] == "5"
    assert messages.told_numbers(best)[0] == "1"


def test_the_page_shows_the_table_below_the_figures(inputs):
    table = Artefact("table", "sweeps", "Numbers", "sweep", element="<table></table>")
    figure = Artefact("figure", "sweeps_losses", "Losses", "sweep", element="<svg></svg>")
    page = build_page(inputs, Built([table, figure], Gallery([], "none")))
    section = page.split('<section id="sweeps"')[1].split("</section>")[0]
    assert section.index("<svg") < section.index("<table")
