"""A table as CSV, Markdown, HTML, and LaTeX that compiles."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import shutil
import subprocess

import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, drawn, made_up_inputs, roadmap_inputs

from benchmark.core.words import DASH
from benchmark.report.build import planned_artefacts
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown, to_page
from benchmark.report.table import (
    Column,
    Section,
    Table,
    TableCell,
    marks,
    text_column,
)


def small_table(rows: int = 1) -> Table:
    columns = [
        text_column("", "Loss"),
        Column(("set", "R@1"), parts=("mean", "sd")),
        Column(("set", "mAP")),
    ]
    row = [
        TableCell("a_b <50%> & c"),
        TableCell("85.20 ± 0.31", "best", "n=4", (0.852, 0.0031)),
        TableCell("−1.0", "second"),
    ]
    lost = [TableCell("other"), TableCell("diverged", tone="bad"), TableCell("–")]
    return Table(
        "A title",
        "A caption with 5% & more.",
        columns,
        [Section("Batch size 32", [row] * rows + [lost])],
    )


def test_csv_carries_full_precision_and_says_why_a_number_is_absent():
    rows = list(csv.DictReader(io.StringIO(to_csv(small_table()))))
    assert rows[0]["set R@1 mean"] == "0.852"
    assert rows[0]["set R@1 sd"] == "0.0031"
    assert rows[0]["set R@1 note"] == "n=4"
    assert rows[0]["section"] == "Batch size 32"
    assert rows[1]["set R@1 mean"] == ""
    assert rows[1]["set R@1 note"] == "diverged"


def test_csv_holds_no_formula_of_a_spreadsheet():
    odd = ["=cmd|A1", "+1+cmd|A1", "@SUM(1)", "-2+3", "\tx"]
    plain = ["-0.5", "+3", "1e-05", "−1.0", "a=b", "SmoothAP"]
    section = Section("=1+1", [[TableCell(words)] for words in (*odd, *plain)])
    table = Table("T", "C", [text_column("", "Loss")], [section])
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [row["Loss"] for row in rows] == [*(f"'{words}" for words in odd), *plain]
    assert rows[0]["section"] == "'=1+1"


def test_markdown_has_one_line_per_row_with_equal_fields_and_marks():
    text = to_markdown(small_table())
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    assert "**85.20 ± 0.31**" in text
    assert "<u>−1.0</u>" in text
    assert r"a\_b &lt;50%>" in text


def test_markdown_fetches_nothing_that_a_name_asks_for():
    table = dataclasses.replace(
        small_table(), title="![a](http://x/a.png) [b][c]", caption="[c]: http://x"
    )
    text = to_markdown(table)
    assert "](" not in text
    assert "][" not in text
    assert "]:" not in text


def test_latex_escapes_text_and_marks_best_and_second():
    text = to_latex(small_table(), "small")
    assert r"a\_b $<$50\%$>$ \& c" in text
    assert r"\textbf{85.20 $\pm$ 0.31}" in text
    assert r"\underline{$-$1.0}" in text
    assert r"\multicolumn{2}{c}{set}" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"\label{tab:small}" in text


@pytest.mark.parametrize(("rows", "environment"), [(3, "table"), (60, "longtable")])
def test_latex_environments_close_and_every_row_has_all_fields(rows, environment):
    text = to_latex(small_table(rows), "small")
    assert re.findall(r"\\begin\{(\w+)\}", text) == list(
        reversed(re.findall(r"\\end\{(\w+)\}", text))
    )
    assert f"\\begin{{{environment}}}" in text
    for line in text.splitlines():
        if line.startswith(("a\\_b", "other")):
            assert len(re.findall(r"(?<!\\)&", line)) == 2
            assert line.endswith(r"\\")
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0


def test_html_escapes_text_names_rows_and_columns_and_scrolls_by_keyboard():
    text = to_html(small_table(), "small")
    assert "a_b &lt;50%&gt; &amp; c" in text
    assert "<50%>" not in text
    assert '<th scope="row">' in text
    assert '<th scope="colgroup" colspan="2">set</th>' in text
    assert 'class="scroll" tabindex="0" role="region"' in text
    assert 'data-sort="0.852"' in text
    assert 'class="num tone-bad"' in text


def test_html_shows_the_first_rows_of_a_huge_table_and_says_so():
    text = to_html(small_table(1000), "small", limit=100)
    assert text.count('<th scope="row">') == 100
    assert "901 more rows are not shown here; the CSV file has all 1001." in text
    assert to_csv(small_table(1000)).count("\n") == 1002


def test_html_puts_columns_that_do_not_fit_below_the_others_and_leaves_out_those_of_the_csv():
    heads = [("A", "x"), ("A", "y"), ("B", "x"), ("B", "y")]
    columns = [text_column("", "Loss"), *map(Column, heads), Column(("B", "z"), paged=False)]
    row = [TableCell("a"), *(TableCell(str(number)) for number in range(5))]
    table = Table("T", "C", columns, [Section("", [row])], across=3)
    one, two = to_html(table, "t").split("<table")[1:]
    assert ">1</td>" in one
    assert ">2</td>" not in one
    assert '<th scope="row">a</th>' in one
    assert ">2</td>" in two
    assert ">1</td>" not in two
    assert '<th scope="row">a</th>' in two
    assert ">4</td>" not in one + two
    assert "B z" in to_csv(table)


def test_a_row_stands_in_the_blocks_that_have_numbers_of_it():
    columns = [text_column("", "Loss"), Column(("A", "x")), Column(("B", "x"))]
    rows = [
        [TableCell(cell) for cell in cells]
        for cells in (("both", "1", "2"), ("one", "3", DASH), ("none", DASH, DASH))
    ]
    table = Table("T", "C", columns, [Section("", rows)], across=1)
    blocks = to_html(table, "t").split("<table")[1:]
    named = [re.findall(r'<th scope="row">(\w+)', block) for block in blocks]
    assert named == [["both", "one", "none"], ["both", "none"]]
    whole = to_html(dataclasses.replace(table, across=None), "t")
    assert re.findall(r'<th scope="row">(\w+)', whole) == ["both", "one", "none"]


def test_a_section_stands_in_no_block_that_has_none_of_its_numbers():
    columns = [Column(("", "Loss"), numeric=False), Column(("CUB", "R@1")), Column(("SOP", "R@1"))]
    number = TableCell("1.0", numbers=(1.0,))
    sections = [
        Section("Batch size 32", [[TableCell("SmoothAP"), number, TableCell(DASH)]]),
        Section("Batch size 64", [[TableCell("SupAP"), TableCell(DASH), number]]),
    ]
    blocks = to_html(Table("T", "C", columns, sections, across=1), "t").split("<table")[1:]
    titles = [re.findall(r"<span>(.*?)</span>", block) for block in blocks]
    assert titles == [["Batch size 32"], ["Batch size 64"]]


def test_html_page_of_a_table_stands_alone():
    page = to_page(small_table(), to_html(small_table(), "small"))
    assert page.startswith("<!doctype html>")
    assert "http" not in page


def test_marks_share_equal_values_and_leave_lone_values_unmarked():
    scores = pd.Series([0.5, 0.7, None, 0.7, 0.6])
    assert [*marks(scores)] == ["", "best", "", "best", "second"]
    assert [*marks(pd.Series([None, 0.7]))] == ["", ""]


ENGINE = next((path for name in ("pdflatex", "tectonic") if (path := shutil.which(name))), None)
HEAD = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,longtable,graphicx}
\begin{document}
"""
ODD = Table(
    "Odd: 50% of {a} & b_c #1 ~ ^ \\ $",
    "Greek τ ρ λ, signs ± − × · → ≥ ≤, “quoted”, 1 < 2 > 0, d_z…",
    [
        text_column("A [b]"),
        Column(("x", "y"), parts=("value",)),
        Column(("x", "z"), parts=("value",)),
    ],
    [
        Section(
            "[first] & more",
            [
                [
                    TableCell("[ci, 1]"),
                    TableCell("1", mark="best", note="n=1_2"),
                    TableCell("–", mark="second"),
                ]
            ],
        )
    ],
    ["A note with 100% of &."],
)


def compiled(body: str, folder) -> str:
    """Returns what the engine printed; asserts that it ended well."""
    (folder / "page.tex").write_text(f"{HEAD}{body}\n\\end{{document}}\n", encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error"] if ENGINE.endswith("pdflatex") else []
    done = subprocess.run(
        [ENGINE, *options, "page.tex"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert (folder / "page.pdf").stat().st_size > 1000
    return done.stdout


@pytest.mark.skipif(ENGINE is None, reason="no LaTeX engine (pdflatex, tectonic) on the path")
def test_every_table_compiles(tmp_path):
    study = made_up_inputs(bad=WENT_WRONG, references=True)
    paper = roadmap_inputs()
    tables = {
        f"{kind}_{name}": table
        for kind, inputs in (("study", study), ("paper", paper))
        for name, table in drawn(planned_artefacts("table", inputs)).items()
        if isinstance(table, Table)
    }
    assert len(tables) > 15
    parts = [
        to_latex(table, name) + r"\clearpage" for name, table in {**tables, "odd": ODD}.items()
    ]
    assert "Missing character" not in compiled("\n".join(parts), tmp_path)
