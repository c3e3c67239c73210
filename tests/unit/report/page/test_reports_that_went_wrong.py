"""Pages of studies that went wrong, are large, or whose texts are hostile."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from html_outline import Outline
from made_up_inputs import (
    collected_provenance,
    made_up_inputs,
    printed_inputs,
    write_collected,
    written_page,
)
from made_up_results import made_up_runs, made_up_study, run_table

from benchmark.papers.printed import Printed
from benchmark.report.build import PAGE, build
from benchmark.report.inputs import FRAMES, Inputs
from benchmark.report.notices import notices

FIGURE = ("seed_differences",)  # one is enough where the rest of the page is what matters


@pytest.mark.parametrize(
    "case", ["nothing finished", "all diverged", "one seed", "one loss", "empty grid"]
)
def test_page_builds_for_studies_that_went_wrong(case, tmp_path):
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1), figures=FIGURE
    )
    everything = [(loss, 32, seed) for loss in ("smooth_ap", "sup_ap") for seed in (0, 1)]
    inputs = {
        "nothing finished": lambda: made_up_inputs(study, bad=dict.fromkeys(everything, "missing")),
        "all diverged": lambda: made_up_inputs(study, bad=dict.fromkeys(everything, "diverged")),
        "one seed": lambda: made_up_inputs(
            made_up_study(losses=("smooth_ap", "sup_ap"), seeds=(0,), figures=FIGURE)
        ),
        "one loss": lambda: made_up_inputs(
            made_up_study(losses=("sup_ap",), seeds=(0, 1), figures=FIGURE)
        ),
        "empty grid": lambda: made_up_inputs(study, runs=made_up_runs(study).iloc[:0]),
    }[case]()
    page = written_page(inputs, tmp_path)
    expected = {
        "nothing finished": "4 of 4 runs have no usable result",
        "all diverged": "4 runs diverged",
        "one seed": "One seed only",
        "one loss": "no seed has finished both for the baseline",
        "empty grid": "No run is recorded for this study",
    }[case]
    assert expected in page.replace("&#39;", "'")
    assert not Outline(page).torn
    assert ">nan<" not in page
    assert "None" not in page


def test_page_says_which_of_two_known_counts_the_data_have(tmp_path):
    inputs = made_up_inputs(made_up_study())
    words = "its counts are those of the files as distributed; the papers print train 7 images"
    data = {"fingerprints": {"0123abcd": 1}, "counts": {}, "which_counts": words}
    record = {**inputs.provenance, "datasets": {"vehicleid": data}}
    inputs = dataclasses.replace(inputs, provenance=record)
    page = written_page(inputs, tmp_path)
    assert f"VehicleID: {words}." in notices(inputs)
    assert page.count(words) == 2, "before the answer, and beside the fingerprint"


def test_page_says_which_metrics_finished_runs_lack_and_builds_from_the_rest(tmp_path):
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1), figures=FIGURE
    )
    runs = made_up_runs(study)
    none = runs[runs["metric"] != "map"]
    some = none[
        ~((none["metric"] == "map_at_r") & (none["loss"] == "sup_ap") & (none["seed"] == 0))
    ]
    inputs = made_up_inputs(study, runs=some)
    page = written_page(inputs, tmp_path)
    assert notices(inputs) == [
        "1 finished run without a value of mAP@R: its means, tests and figures are those of the "
        "others.",
        "No finished run has mAP, which the study needs.",
    ]
    assert "No finished run has mAP, which" in page
    assert not Outline(page).torn
    assert ">nan<" not in page
    cells = page.split('id="table-comparison"')[1].split("</table>")[0]
    assert "(n=1)" in cells or "n=1" in cells, "a mean of fewer runs says so"
    unmeasured = made_up_inputs(study, runs=runs[runs["metric"].isin(("loss_ms", ""))])
    page = written_page(unmeasured, tmp_path)
    assert "No finished run has R@1" in page
    assert not Outline(page).torn
    assert ">nan<" not in page


def test_page_of_a_half_finished_grid_counts_and_lists_what_is_missing(tmp_path):
    study = made_up_study(
        losses=("smooth_ap", "sup_ap", "roadmap"), seeds=(0, 1, 2), figures=FIGURE
    )
    rest = {
        (loss, 128, seed): "missing"
        for loss in ("smooth_ap", "sup_ap", "roadmap")
        for seed in (0, 1, 2)
    }
    inputs = made_up_inputs(study, bad={**rest, ("roadmap", 32, 2): "failed"})
    page = written_page(inputs, tmp_path)
    assert "Partial results: 10 of 18 runs have no usable result" in page
    assert not Outline(page).torn
    listed = page.split('<section id="missing"')[1].split("</section>")[0]
    assert "exit status 1" in listed
    assert listed.count("missing") >= 1
    assert "128" in listed
    compared = page.split('id="table-comparison"')[1].split("</table>")[0]
    assert "batch of 32" in compared
    assert ">nan<" not in page


def test_the_page_of_a_study_without_runs_says_so(tmp_path):
    page = written_page(printed_inputs(made_up_study(), Printed()), tmp_path)
    assert "No run is recorded for this study" in page
    assert "There is no answer yet" in page


def test_page_hides_where_and_by_whom_it_was_made(tmp_path):
    study = made_up_study(losses=("smooth_ap", "sup_ap"), seeds=(0, 1), figures=())
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "no file /home/somebody/pictures/cat.png"
    inputs = made_up_inputs(study, runs=runs)
    record = {
        **collected_provenance(),
        "hostname": "secret-box",
        "root": "/home/somebody/bench/results",
    }
    write_collected(dataclasses.replace(inputs, provenance=record), runs, tmp_path)
    assert build(study, tmp_path).failed == {}
    text = (tmp_path / "made_up" / PAGE).read_text()
    assert "somebody" not in text
    assert "secret-box" not in text
    assert str(tmp_path) not in text
    assert "…/cat.png" in text


def test_text_from_studies_and_runs_cannot_become_markup(tmp_path):
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"),
        seeds=(0, 1),
        figures=(),
        title="<script>x</script>",
        question="a < b & c",
    )
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "<img src=x onerror=y>"
    page = written_page(made_up_inputs(study, runs=runs), tmp_path)
    assert "<script>x" not in page
    assert "<img" not in page
    assert "a &lt; b &amp; c" in page


def test_a_large_study_stays_readable(tmp_path):
    study = made_up_study()
    one = made_up_inputs(study, runs=made_up_runs(study, epochs=4))
    names = [f"set_{number:02d}" for number in range(4)]
    tables = {name: _copies(getattr(one, name), names) for name in FRAMES}
    runs = _copies(made_up_runs(study, epochs=4), names)
    many = Inputs.of(study, run_table(runs), tables, one.printed, one.provenance)
    page = written_page(many, tmp_path)
    assert "further panels are only in the CSV file" in page
    assert "more rows are not shown here" in page
    assert len(page) < 8e6


def _copies(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the rows of one dataset under each of the names."""
    found = []
    for name in names if len(table) else ():
        copy = table.assign(dataset=name)
        for column in ("run_id", "family"):
            if column in copy:
                copy[column] = copy[column].str.replace("glyphs_1k", name)
        found.append(copy)
    return pd.concat(found) if found else table
