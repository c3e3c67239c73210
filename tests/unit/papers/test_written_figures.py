"""What the files of a paper's figures and tables may say: panels, lines and numbers that are some.

What is wrong was found when the figures were drawn, after the runs, and blamed the study's files.
"""

from __future__ import annotations

import pytest
from paper_folders import FILES, changed, problems, write_paper

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.paper import all_figures, load_papers

PANELS = FILES["figures.yaml"].partition("  panels:")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (PANELS[1] + PANELS[2], "  panels: []\n", "fig2.panels (line"),
        ("[{dataset: cub}]", "[]", "fig2.panels.0.test_sets (line"),
        ("[{dataset: cub}]", "[{dataset: cub}, {dataset: cub}]", "comes twice; keep one"),
        ("x: tau", "x: batch_size, baseline: sup_ap", "fig2.panels.0.baseline  is the loss of"),
        ("x: tau", "x: tau, batch_size: -5", "fig2.panels.0.batch_size (line"),
        ("x: tau", "x: tau, batch_size: true", "fig2.panels.0.batch_size (line"),
        ("at: 0.1", "at: .inf", "fig2.panels.0.published.at (line"),
        ("at: 0.1", "at: .nan", "fig2.panels.0.published.at (line"),
        (
            "kind: sweep",
            "kind: gain",
            "fig2.panels.0.loss_against  is missing; a figure of kind 'gain' needs it",
        ),
    ],
)
def test_a_panel_that_nothing_can_draw_is_refused(tmp_path, old, new, words):
    text = problems(tmp_path, figures=changed("figures.yaml", old, new))
    assert "figures.yaml: " in text and words in text, text


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("gain", "loss_against: sup_ap", "loss_against  is the loss of the panel"),
        ("effect", "parameter: tau, first: a, second: a", "second  is 'a', as the first"),
    ],
)
def test_a_thing_is_not_compared_with_itself(tmp_path, kind, keys, words):
    figures = changed("figures.yaml", "kind: sweep", f"kind: {kind}").replace("x: tau", keys)
    assert f"figures.yaml: fig2.panels.0.{words}" in problems(tmp_path, figures=figures)


@pytest.mark.parametrize("key", ["rows", "columns"])
def test_a_table_has_rows_and_columns(tmp_path, key):
    tables = {"rows": "[row_label, dataset, metric]", "columns": "[row_label, dataset, metric]"}
    tables[key] = "[]"
    text = "table1: {title: toys, " + ", ".join(f"{k}: {v}" for k, v in tables.items()) + "}\n"
    assert f"tables.yaml: table1.{key} (line 1)" in problems(tmp_path, tables=text)


def test_a_column_arranges_a_table_once(tmp_path):
    tables = changed("tables.yaml", "[dataset, metric]", "[dataset, metric, dataset]")
    assert "tables.yaml: table1.columns (line 1)" in problems(tmp_path, tables=tables)


def test_the_figures_of_the_suite_are_as_they_were():
    assert len(all_figures()) > 5 and load_papers()


def test_no_two_papers_make_files_of_one_name(tmp_path, monkeypatch):
    """The table of the first paper was replaced by that of the second."""
    rest = dict.fromkeys(("claims", "implied", "outside", "footnotes"))
    outside = "outside:\n  - rows: {method: toy}\n    reason: nobody has the code\n"
    write_paper(tmp_path / "mine", "toy", **{**rest, "outside": outside}, **_named("table1_x"))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    load_papers()
    write_paper(tmp_path / "mine", "toy_table1", **{**rest, "outside": outside}, **_named("x"))
    with pytest.raises(ReferenceDataError) as caught:
        load_papers()
    for kind in ("tables", "figures"):
        place = f"toy_table1/{kind}.yaml: x  is written to toy_table1_x, as a {kind[:-1]} of toy is"
        assert place in str(caught.value), caught.value


def test_no_paper_makes_a_file_of_the_suite(tmp_path, monkeypatch):
    rest = dict.fromkeys(("claims", "implied", "outside", "footnotes"))
    outside = "outside:\n  - rows: {method: toy}\n    reason: nobody has the code\n"
    write_paper(tmp_path / "mine", "best", **{**rest, "outside": outside}, **_named("epoch"))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    with pytest.raises(ReferenceDataError, match="best_epoch, as a table of this suite is; rename"):
        load_papers()


def _named(name: str) -> dict[str, str]:
    """Return files of a paper whose table and figure have one name."""
    return {
        "results": FILES["results.csv"].replace("table1", name),
        "tables": FILES["tables.yaml"].replace("table1", name),
        "figures": FILES["figures.yaml"]
        .replace("fig2", name)
        .replace("table: table1", f"table: {name}"),
    }
