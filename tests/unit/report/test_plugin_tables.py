"""A plugin's table or figure that goes wrong is not shown, with the reason; the others are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import matplotlib
import pytest
from made_up_inputs import made_up_inputs
from made_up_results import made_up_study

from benchmark.core.registry import Entry
from benchmark.report import steps
from benchmark.report.figures import FIGURES
from benchmark.report.render.table import Column, Section, Table, TableCell
from benchmark.report.tables import TABLES


def table(cells, *columns):
    return Table("Mine", "", list(columns) or [Column(("a",))], [Section("", cells)])


WRONG = {
    "TypeError: it returned None; return a Table": lambda inputs: None,
    "ZeroDivisionError: division by zero": lambda inputs: 1 / 0,
    "SystemExit: 0": lambda inputs: sys.exit(0),
    "takes 0 positional arguments": lambda: None,
    "has no attribute 'replace'": lambda inputs: Table(None, "", [Column(("a",))], []),
    "1 numbers in a cell of the column ('a',), which has low, high": lambda inputs: table(
        [[TableCell("x", numbers=(1.0,))]], Column(("a",), ("low", "high"))
    ),
}


@pytest.mark.parametrize(("told", "build"), WRONG.items(), ids=range(len(WRONG)))
def test_a_wrong_table_is_its_own_failure(told, build, tmp_path, monkeypatch, capsys):
    TABLES.names()
    monkeypatch.setitem(TABLES._entries, "mine", Entry("mine", build, "Mine", {"of_trials": False}))
    inputs = made_up_inputs(made_up_study(tables=("mine", "comparison"), figures=()))
    mine, comparison, *_ = steps.write_tables(inputs, tmp_path / "tables")
    assert mine.reason.startswith("table 'mine' (") and told in mine.reason
    assert str(tmp_path.parents[-2]) not in mine.reason and __file__ not in mine.reason
    assert f"warning: table 'mine' ({__file__})" in capsys.readouterr().err
    assert comparison.reason == "" and comparison.rows


def test_a_wrong_figure_is_its_own_failure(tmp_path, monkeypatch):
    FIGURES.names()
    entry = Entry("mine", lambda inputs: 5, "Mine", {"of_trials": False})
    monkeypatch.setitem(FIGURES._entries, "mine", entry)
    inputs = made_up_inputs(made_up_study(tables=(), figures=("mine", "loss_cost")))
    mine, *_ = steps.write_figures(inputs, tmp_path / "figures")
    assert "TypeError: it returned 5; return a Drawing" in mine.reason


def test_an_error_of_the_suites_own_table_is_raised(tmp_path, monkeypatch):
    def broken(inputs):
        raise KeyError("a column")

    broken.__module__ = "benchmark.report.tables.broken"
    TABLES.names()
    monkeypatch.setitem(TABLES._entries, "mine", Entry("mine", broken, "M", {"of_trials": False}))
    with pytest.raises(KeyError, match="a column"):
        steps.write_tables(made_up_inputs(made_up_study(tables=("mine",))), tmp_path / "tables")


def test_a_plugin_may_change_the_tables_that_it_is_given(tmp_path, monkeypatch):
    def build(inputs):
        for frame in (inputs.runs, inputs.summary):
            frame.loc[:, "loss"] = "changed"
        os.chdir("/")
        matplotlib.rcParams["font.size"] = 99
        return table([[TableCell("x")]])

    TABLES.names()
    monkeypatch.setitem(TABLES._entries, "mine", Entry("mine", build, "Mine", {"of_trials": False}))
    inputs = made_up_inputs(made_up_study(tables=("mine", "comparison"), figures=()))
    monkeypatch.chdir(tmp_path)
    mine, comparison, *_ = steps.write_tables(inputs, Path("tables"))
    assert not mine.reason and not comparison.reason and matplotlib.rcParams["font.size"] != 99
    assert (tmp_path / "tables" / "comparison.csv").is_file()
    assert "changed" not in {*inputs.runs["loss"], *inputs.summary["loss"]}
