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

from benchmark.report.build import PAGE, build
from benchmark.report.gallery import PairChoice
from benchmark.report.notices import notices
from benchmark.report.study_results import FRAMES, StudyResults
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed

TWO = ("smooth_ap", "sup_ap")
SMALL = made_up_study(
    losses=TWO, batch_sizes=(32,), seeds=(0, 1), tables=("comparison",), figures=()
)
RUNS = [("smooth_ap", 32, 0), ("smooth_ap", 32, 1), ("sup_ap", 32, 0), ("sup_ap", 32, 1)]


def one_figure(**changes):
    """Return a study with all tables and a figure: one is enough where the rest is what matters."""
    return dataclasses.replace(SMALL, tables=None, figures=("seed_differences",), **changes)


def seeded(losses, seeds):
    blocks = made_up_study(losses=losses, batch_sizes=(32,), seeds=seeds).blocks
    return made_up_inputs(one_figure(blocks=blocks, seeds=seeds))


def of_status(status):
    return made_up_inputs(one_figure(), bad=dict.fromkeys(RUNS, status))


def without_grid():
    return made_up_inputs(one_figure(), runs=made_up_runs(SMALL).iloc[:0])


WENT_WRONG = {
    "4 of 4 runs have no usable result": lambda: of_status("missing"),
    "4 runs diverged": lambda: of_status("diverged"),
    "One seed only": lambda: seeded(TWO, (0,)),
    "no seed has finished both for the baseline": lambda: seeded(("sup_ap",), (0, 1)),
    "No run is recorded for this study": without_grid,
}


@pytest.mark.parametrize("caution", WENT_WRONG)
def test_page_builds_for_studies_that_went_wrong(caution, tmp_path):
    page = written_page(WENT_WRONG[caution](), tmp_path)
    assert caution in page
    assert not Outline(page).torn
    assert ">nan<" not in page
    assert "None" not in page


def test_page_says_which_of_two_known_counts_the_data_have(tmp_path):
    inputs = made_up_inputs(SMALL)
    words = "its counts are those of the files as distributed; the papers print train 7 images"
    data = {"fingerprints": {"0123abcd": 1}, "counts": {}, "which_counts": words}
    record = {**inputs.provenance, "datasets": {"vehicleid": data}}
    inputs = dataclasses.replace(inputs, provenance=record)
    page = written_page(inputs, tmp_path)
    assert f"VehicleID: {words}." in notices(inputs)
    assert page.count(words) == 2, "before the answer, and beside the fingerprint"


def test_page_says_which_metrics_finished_runs_lack_and_builds_from_the_rest(tmp_path, messages):
    runs = made_up_runs(SMALL)
    none = runs[runs["metric"] != "map"]
    lacking = (none["metric"] == "map_at_r") & (none["loss"] == "sup_ap") & (none["seed"] == 0)
    inputs = made_up_inputs(SMALL, runs=none[~lacking])
    one_run, no_run = notices(inputs)
    assert messages.told_numbers(one_run) == ["1"]
    assert messages.told_numbers(no_run) == []
    cells = written_page(inputs, tmp_path).split('id="table-comparison"')[1]
    assert "n=1" in cells, "a mean of fewer runs says so"


def test_page_builds_without_any_score(tmp_path):
    runs = made_up_runs(SMALL)
    unmeasured = made_up_inputs(SMALL, runs=runs[runs["metric"].isin(("loss_ms", ""))])
    page = written_page(unmeasured, tmp_path)
    assert "No finished run has R@1" in page
    assert not Outline(page).torn
    assert ">nan<" not in page


def test_page_of_a_half_finished_grid_counts_and_lists_what_is_missing(tmp_path):
    tables = ("comparison", "headline", "missing")
    losses = (*TWO, "roadmap")
    study = made_up_study(losses=losses, seeds=(0, 1, 2), tables=tables, figures=())
    bad = {("roadmap", 32, 2): "failed"}
    for loss in losses:
        bad |= {(loss, 128, seed): "missing" for seed in (0, 1, 2)}
    page = written_page(made_up_inputs(study, bad=bad), tmp_path)
    assert "Partial results: 10 of 18 runs have no usable result" in page
    assert not Outline(page).torn
    listed = page.split('<section id="missing"')[1].split("</section>")[0]
    assert "exit status 1" in listed
    assert "missing" in listed
    assert "128" in listed
    compared = page.split('id="table-comparison"')[1].split("</table>")[0]
    assert "batch of 32" in compared
    assert ">nan<" not in page


def test_the_page_of_a_study_without_runs_says_so(tmp_path):
    page = written_page(printed_inputs(SMALL, Printed()), tmp_path)
    assert "No run is recorded for this study" in page
    assert "There is no answer yet" in page


def test_page_hides_where_and_by_whom_it_was_made(tmp_path):
    study = dataclasses.replace(SMALL, tables=("comparison", "missing"))
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "no file /home/somebody/pictures/cat.png"
    private = {"hostname": "secret-box", "root": "/home/somebody/bench/results"}
    record = {**collected_provenance(), **private}
    inputs = dataclasses.replace(made_up_inputs(SMALL), provenance=record)
    write_collected(inputs, runs, tmp_path)
    assert build(study, tmp_path, PairChoice()).failed == {}
    text = (tmp_path / "made_up" / PAGE).read_text()
    assert "somebody" not in text
    assert "secret-box" not in text
    assert str(tmp_path) not in text
    assert "…/cat.png" in text


def test_text_from_studies_and_runs_cannot_become_markup(tmp_path):
    hostile = {"title": "<script>x</script>", "question": "a < b & c", "tables": ("missing",)}
    study = dataclasses.replace(SMALL, **hostile)
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "<img src=x onerror=y>"
    page = written_page(made_up_inputs(study, runs=runs), tmp_path)
    assert "<script>x" not in page
    assert "<img" not in page
    assert "a &lt; b &amp; c" in page


def test_a_large_study_stays_readable(tmp_path):
    shown = {"tables": ("all_pairs",), "figures": ("metric_by_batch_size",)}
    one = made_up_inputs()
    names = [f"set_{number:02d}" for number in range(3)]
    tables = {name: _copies(getattr(one, name), names) for name in FRAMES}
    runs = run_table(_copies(made_up_runs(one.study), names))
    study = dataclasses.replace(one.study, **shown)
    many = StudyResults.of(StudyGrid.of(study), runs, tables, one.printed, one.provenance)
    page = written_page(many, tmp_path)
    assert "further panels are only in the CSV file" in page
    assert "more rows are not shown here" in page
    assert len(page) < 2e6


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
