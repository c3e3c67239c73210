"""The benchmark's parts fit together: evaluation, growth, tables and the command for everything."""

from __future__ import annotations

import csv
import types

import pytest

from benchmark.bench import evaluation, everything
from benchmark.bench.figures import draw_evaluation
from benchmark.bench.sections import Section, write_all

ROWS = [
    {"size": 1000, "method": "a", "ms": 1234.5, "ratio": None},
    {"size": 1000, "method": "b", "ms": 0.12345, "ratio": 2.0},
    {"size": 2000, "method": "a", "ms": 3.0, "ratio": 1.0},
]


def test_markdown_has_a_table_for_each_value_of_the_group():
    text = Section("losses", "Losses", "A note.", ROWS, "size", ("method", "ms", "ratio")).markdown()
    assert text.count("| method | ms | ratio |") == 2
    assert "### size 1,000" in text and "| b | 0.123 | 2 |" in text and "| a | 1,234 |  |" in text


def test_report_and_tables_are_written_side_by_side(tmp_path):
    sections = [Section("one", "One", "x", ROWS), Section("two", "Two", "y", ROWS[:1])]
    text = write_all(sections, tmp_path, "a machine").read_text()
    assert "a machine" in text and text.index("## One") < text.index("## Two")
    assert [row["ms"] for row in csv.DictReader((tmp_path / "one.csv").open())] == ["1234.5", "0.12345", "3.0"]


def test_evaluation_is_measured_beside_the_floor_and_the_library():
    rows = evaluation.measure_evaluation((60, 120), dim=8, repeats=2)
    methods = [row["method"] for row in rows if row["items"] == 120]
    assert methods[:2] == [evaluation.FLOOR, evaluation.OURS] and "AccuracyCalculator, full" in methods
    assert all(row["times_floor"] == 1.0 for row in rows if row["method"] == evaluation.FLOOR)
    assert all(0 < row["least"] <= row["seconds"] <= row["most"] for row in rows)
    only = evaluation.measure_evaluation((60,), dim=8, repeats=1, names=(evaluation.FLOOR, evaluation.OURS))
    assert [row["method"] for row in only] == [evaluation.FLOOR, evaluation.OURS]
    assert "2 methods" in draw_evaluation(only, evaluation.OURS).alt


def test_growth_is_the_exponent_of_a_power_law_and_needs_three_sizes():
    rows = [{"method": "square", "items": n, "seconds": 3e-9 * n**2} for n in (100, 1000, 5000)]
    rows += [{"method": "short", "items": n, "seconds": 1.0} for n in (100, 1000)]
    assert evaluation.growth(rows) == {"square": pytest.approx(2.0)}


def test_everything_writes_after_each_part_so_that_an_interruption_loses_only_the_rest(tmp_path, monkeypatch):
    def first(out, *, quick, show):
        assert quick
        return Section("first", "First", "n", ROWS)

    def second(out, *, quick, show):
        raise KeyboardInterrupt

    parts = {"first": first, "second": second}
    monkeypatch.setattr(everything, "PARTS", tuple(parts))
    monkeypatch.setattr(
        everything.importlib, "import_module", lambda name: types.SimpleNamespace(section=parts[name.split(".")[-1]])
    )
    with pytest.raises(KeyboardInterrupt):
        everything.run(tmp_path, quick=True, threads=2, show=lambda text: None)
    text = (tmp_path / "bench.md").read_text()
    assert "## First" in text and "2 threads" in text and "Quick" in text


def test_every_part_of_the_benchmark_has_a_section():
    import importlib

    for name in everything.PARTS:
        assert callable(importlib.import_module(f"benchmark.bench.{name}").section)
