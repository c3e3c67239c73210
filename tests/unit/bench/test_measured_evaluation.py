"""The timing of evaluation against its alternatives."""

from __future__ import annotations

from benchmark.bench.evaluation import FLOOR, measure_evaluation


def test_every_method_is_measured_at_every_size_relative_to_the_matrix_product():
    rows = measure_evaluation([60, 120], dim=8, repeats=1)
    methods = {row["method"] for row in rows}
    assert {FLOOR, "ours", "AccuracyCalculator", "faiss, 6 neighbours"} <= methods
    assert len(rows) == 2 * len(methods)
    assert all(row["seconds"] > 0 for row in rows)
    assert {row["times_floor"] for row in rows if row["method"] == FLOOR} == {1.0}
