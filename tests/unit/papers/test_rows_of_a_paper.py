"""Rows of a paper's numbers name methods, metrics and versions that exist."""

from __future__ import annotations

import pytest
from paper_folders import FILES, METHODS, changed, load_paper, problems, write_paper


def test_a_method_stands_for_a_loss_of_the_suite_or_says_why_no_study_has_it(tmp_path):
    about = changed("paper.yaml", "A toy\n", "A toy\nmethods: {toy: {loss: sup_app}}\n")
    text = problems(tmp_path / "wrong", paper=about)
    assert "line 2, column method: unknown loss 'sup_app'; did you mean 'sup_ap'?" in text
    assert "line 3" not in text, "sop is outside"
    everything = "outside:\n  - rows: {table: table1}\n    reason: nobody has the code\n"
    rest = dict.fromkeys(("claims", "figures", "implied"))
    load_paper(write_paper(tmp_path / "said", outside=everything, paper=about, **rest))
    copied = changed("results.csv", "smoothap,copied", "of_another_paper,copied")
    load_paper(write_paper(tmp_path / "copied", results=copied))


def test_a_row_of_no_version_of_the_paper_is_refused(tmp_path):
    rows = FILES["results.csv"].splitlines()
    versioned = ["version," + rows[0], "v1," + rows[1], "v9," + rows[1]]
    about = FILES["paper.yaml"] + METHODS + "versions: {v1: Toy}\n"
    rest = {"implied": None, "outside": None, "footnotes": None}
    text = problems(tmp_path, paper=about, results="\n".join(versioned) + "\n", **rest)
    assert "line 3, column version: unknown version 'v9'" in text


HOURS = "table1,Toy,toy,own,sop,,resnet50,512,64,,train_hours,5,,,hours,\n"


@pytest.mark.parametrize(
    "column",
    ["points", "sd_points", "rounding", "text", "fits", "__class__", "conditions", "line", "means"],
)
def test_only_columns_choose_rows(tmp_path, column):
    """The row of hours has no points: asking for them was a KeyError."""
    text = problems(
        tmp_path,
        results=FILES["results.csv"] + HOURS,
        outside=f"outside:\n  - rows: {{{column}: 3}}\n    reason: x\n",
        implied=f"implied:\n  - rows: {{{column}: 3}}\n    means: {{sampling: hard}}\n    why: x\n",
        tables=changed("tables.yaml", "[dataset, metric]", f"[dataset, metric, {column}]"),
        footnotes=changed("footnotes.yaml", "row_label: Toy", f"{column}: '3'"),
    )
    for place in (
        "outside.yaml: outside.0.rows",
        "implied.yaml: implied.0.rows",
        "tables.yaml: table1",
        "footnotes.yaml: footnotes.0.where",
    ):
        assert f"{place}  unknown column '{column}'" in text, text


def test_a_condition_may_be_named_like_what_follows_from_a_row(tmp_path):
    rows = FILES["results.csv"] + HOURS.replace("own", "copied").replace(
        ",,train", ",points=3,train"
    )
    columns = changed("tables.yaml", "[dataset, metric]", "[dataset, metric, points]")
    paper = load_paper(write_paper(tmp_path, results=rows, tables=columns))
    assert [each.field("points") for each in paper.numbers] == ["", "", "", "3"]


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ("nosuch: 1", "implied.0.means  unknown condition 'nosuch'"),
        ("batch_sise: 32", "did you mean 'batch_size'?"),
        ("batch_size: -1", "implied.0.means.batch_size  is -1; give a whole number"),
        ("batch_size: 32.5", "is 32.5"),
        ("batch_size: [32]", "is [32]"),
    ],
)
def test_what_no_row_can_mean_is_refused(tmp_path, means, words):
    rows = "implied:\n  - rows: {}\n    why: x\n    means: {" + means + "}\n"
    assert words in problems(tmp_path, implied=rows)
