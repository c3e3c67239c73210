"""The benchmark's parts fit together: evaluation, growth, tables and the command for everything."""

from __future__ import annotations

import csv
import time
import types

import pandas as pd
import pytest
import torch
from perf import evaluation, report
from perf.figures import draw_evaluation
from perf.interleave import interleaved
from perf.rates import Rates, machine_rates
from perf.sections import Measurement, Section, Target, targets_section, write_report

from benchmark.core.errors import BenchmarkError

ROWS = [
    {"size": 1000, "method": "a", "ms": 1234.5, "ratio": None},
    {"size": 1000, "method": "b", "ms": 0.12345, "ratio": 2.0},
    {"size": 2000, "method": "a", "ms": 3.0, "ratio": 1.0},
]
MEASURED = [Measurement(row) for row in ROWS]


def test_markdown_has_a_table_for_each_value_of_the_group():
    text = Section("losses", "Losses", "A note.", MEASURED, "size").markdown()
    assert text.count("| method | ms | ratio |") == 2
    assert "### size 1,000" in text and "| b | 0.123 | 2 |" in text and "| a | 1,234 |  |" in text


def test_report_and_tables_are_written_side_by_side(tmp_path):
    sections = [Section("one", "One", "x", MEASURED), Section("two", "Two", "y", MEASURED[:1])]
    text = write_report(sections, tmp_path, "a machine").read_text()
    assert "a machine" in text and text.index("## One") < text.index("## Two")
    rows = csv.DictReader((tmp_path / "one.csv").open())
    assert [row["ms"] for row in rows] == ["1234.5", "0.12345", "3.0"]


def test_evaluation_is_measured_beside_the_floor_and_the_library():
    rows = evaluation.measure_evaluation((60, 120), dim=8, repeats=2)
    methods = [row["method"] for row in rows if row["items"] == 120]
    assert methods[:3] == [evaluation.FLOOR, evaluation.OURS, evaluation.OURS_SHORT]
    assert {evaluation.LIBRARY, "AccuracyCalculator, full", "faiss, 6 neighbours"} <= set(methods)
    assert len(rows) == 2 * len(methods)
    assert all(row["times_faster"] == 1.0 for row in rows if row["method"] == evaluation.LIBRARY)
    assert all(row["times_floor"] == 1.0 for row in rows if row["method"] == evaluation.FLOOR)
    assert all(0 < row["min"] <= row["milliseconds"] <= row["max"] for row in rows)
    names = [evaluation.FLOOR, evaluation.OURS]
    only = pd.DataFrame(evaluation.measure_evaluation((60,), dim=8, repeats=1, names=names))
    assert list(only["method"]) == names
    assert "2 methods" in draw_evaluation(only, names[1:], {evaluation.OURS: 2.0}).alt


def met(method, items, **values):
    row = {"times_floor": 1.4, "times_faster": 0.9, "peak_mb": 5000.0, **values}
    return [
        target.met for target in evaluation.targets_of({"method": method, "items": items, **row})
    ]


def test_evaluation_is_judged_by_floor_library_and_memory():
    assert met(evaluation.OURS, 20_000) == [True]
    assert met(evaluation.OURS, 60_502, times_floor=1.6) == [False]
    assert met(evaluation.OURS_SHORT, 20_000) == [False]
    assert (
        met(evaluation.OURS_SHORT, 60_502, times_faster=None) == met(evaluation.OURS, 5_000) == []
    )
    assert met(evaluation.OURS_APART, 60_502) == [False]
    assert met(evaluation.OURS_APART, 60_502, peak_mb=None) == []


def test_memory_of_evaluation_is_that_of_the_block_of_scores():
    row = evaluation.measured_apart(6_000, 1_000)
    assert (row["items"], row["queries"], row["times_floor"]) == (6_000, 1_000, None)
    if row["peak_mb"] is None:
        pytest.skip("the system does not say")
    scores = 1_000 * 6_000 * 4 / 2**20
    assert scores < row["peak_mb"] < 10 * scores and row["milliseconds"] > 0


def test_methods_are_interleaved_until_their_time_is_used_up():
    order = []

    def method(name, seconds):
        def measure():
            order.append(name)
            time.sleep(seconds)
            return float(len(order))

        return measure

    methods = {"slow": method("slow", 0.05), "fast": method("fast", 0.0)}
    assert interleaved(methods, 3, seconds=0.04) == {"slow": [1.0], "fast": [2.0, 3.0, 4.0]}
    assert order == ["slow", "fast", "fast", "fast"]


def test_a_target_is_met_at_its_bound_and_never_by_nan():
    assert Target("x", 3.0, 3, "s").met and not Target("x", 3.1, 3, "s").met
    assert Target("x", 2.0, 2, "", at_least=True).met
    assert not Target("x", 1.9, 2, "", at_least=True).met
    assert not any(Target("x", float("nan"), 2, "", at_least=b).met for b in (True, False))
    both = [Target("x", 1.0, 3, "s"), Target("y", 1.0, 2, "times", at_least=True)]
    judged, plain = Section("a", "A", "", [Measurement({}, both), Measurement({})]).rows
    assert judged == {"target": "at most 3 s; at least 2 times", "met": "no"}
    assert plain == {"target": None, "met": None}


def test_the_first_table_shows_the_worst_of_several_measurements():
    costs = [(2.0, "a"), (3.5, "b"), (1.0, "c")]
    targets = [Target("cost", value, 3, "x floor", where=where) for value, where in costs]
    targets += [Target("speed", value, 2, "", at_least=True) for value in (2.5, 2.1)]
    (section,) = targets_section([Section("losses", "L", "", [Measurement({}, targets)])])
    worst = [(row["measured"], row["where"], row["met"]) for row in section.rows]
    assert worst == [(3.5, "b", "no"), (2.1, "", "yes")]
    assert "1 of 2 met" in section.note


def test_limits_name_amounts_and_the_time_that_they_take():
    text = Rates(operations=1e11, moved=2e10).limit(5e10, 2e12)
    assert (
        text.startswith("50 GFLOP, 2 TB moved: 500 ms and 100 s at")
        and "100 GFLOP/s" in text
        and "20 GB/s" in text
    )
    rates = machine_rates()
    assert 1e8 < rates.operations < 1e16 and 1e7 < rates.moved < 1e14


def test_growth_is_the_exponent_of_a_power_law_and_needs_three_sizes():
    rows = [
        {"method": "square", "items": n, "milliseconds": 3e-9 * n**2} for n in (100, 1000, 5000)
    ]
    rows += [{"method": "short", "items": n, "milliseconds": 1.0} for n in (100, 1000)]
    assert evaluation.growth(rows) == {"square": pytest.approx(2.0)}


@pytest.fixture
def with_parts(monkeypatch):
    def set_parts(**parts):
        monkeypatch.setattr(report, "PARTS", tuple(parts))
        modules = {name: types.SimpleNamespace(section=part) for name, part in parts.items()}
        found = types.SimpleNamespace(import_module=lambda name: modules[name.split(".")[-1]])
        # of that module alone: torch imports parts of itself late
        monkeypatch.setattr(report, "importlib", found)

    return set_parts


def first(out, *, quick, show):
    assert quick
    targets = [Target("cost", 4.0, 3, "s"), Target("speed", 1.0, 3, "s")]
    return Section("first", "First", "n", [*MEASURED[1:], Measurement(ROWS[0], targets)])


def test_everything_writes_after_each_part_so_that_an_interruption_loses_only_the_rest(
    tmp_path, with_parts
):
    def second(out, *, quick, show):
        raise KeyboardInterrupt

    with_parts(first=first, second=second)
    with pytest.raises(KeyboardInterrupt):
        report.run(tmp_path, quick=True, threads=2, show=lambda text: None)
    text = (tmp_path / "bench.md").read_text()
    assert "## First" in text and "2 threads" in text and "Quick" in text
    assert "1 of 2 met" in text and text.index("| cost | 4 |") < text.index("## First")


def test_a_part_that_fails_is_named_and_loses_no_other(tmp_path, with_parts):
    def broken(out, *, quick, show):
        torch.set_num_threads(1)
        raise ValueError("no\nroom")

    def last(out, *, quick, show):
        return Section("last", "Last", f"{torch.get_num_threads()} threads now", MEASURED)

    (tmp_path / "broken.csv").write_text("of an earlier run")
    shown = []
    with_parts(first=first, broken=broken, last=last)
    with pytest.raises(BenchmarkError, match="broken: ValueError: no"):
        report.run(tmp_path, quick=True, threads=2, show=shown.append)
    text = (tmp_path / "bench.md").read_text()
    assert (
        "- broken: ValueError: no room" in text and "## First" in text and "2 threads now" in text
    )
    assert not (tmp_path / "broken.csv").exists()
    assert "3/3 last ..." in shown and any("Traceback" in line for line in shown)


def test_every_part_of_the_benchmark_has_a_section():
    import importlib

    for name in report.PARTS:
        assert callable(importlib.import_module(f"perf.{name}").section)
