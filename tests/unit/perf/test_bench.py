"""The benchmark measures what it says, and compares like with like."""

from __future__ import annotations

import json
import types

import perf
import pytest
import torch
from perf import alternatives, bench, evaluation, gpu
from perf.losses import FLOOR, LIBRARY, OURS, measure
from perf.timing import Target, peak_of_process

from benchmark.losses import create_loss


@pytest.mark.parametrize("name", ["smooth_ap", "sup_ap"])
def test_dense_alternatives_equal_the_losses_they_are_compared_with(name):
    rows = torch.randn(24, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows, labels = torch.nn.functional.normalize(rows, dim=1), torch.arange(24) // 4
    value, slope = gpu.backward(create_loss(name), rows, labels)
    expected = gpu.backward(getattr(alternatives, f"dense_{name}"), rows, labels)
    assert value.item() == pytest.approx(expected[0].item(), rel=1e-6)
    assert torch.allclose(slope, expected[1], rtol=1e-5, atol=1e-8)


def test_losses_and_evaluation_are_measured_beside_floor_and_library():
    rows = {row["method"]: row for row in measure(16, 2, 1.0)}
    assert {FLOOR, LIBRARY, "PML FastAP", "dense SmoothAP", "dense SupAP", *OURS} == set(rows)
    assert rows[FLOOR]["times_floor"] == rows[LIBRARY]["times_faster"] == 1.0
    assert {FLOOR, "PML FastAP", *OURS} == {row["method"] for row in measure(32, 1, 1.0, "quarter")}
    scores = {row["method"]: row for row in evaluation.measure(60, dim=8)}
    assert scores[evaluation.FLOOR]["times_floor"] == 1 and scores[evaluation.OURS]["peak_mb"] >= 0


def test_peak_of_process_sees_memory_that_is_given_back():
    grown = peak_of_process(lambda: len(bytearray(b"x") * (256 * 2**20)))
    assert grown > 200 * 2**20


def test_a_part_that_fails_is_named_and_the_worst_number_is_shown(tmp_path, monkeypatch):
    def rows(quick):
        costs = [Target("cost", value, 3, "x floor") for value in (2.0, 3.5, 1.0)]
        yield {"method": "a", "ms": 1234.5, "targets": costs}

    def broken(quick):
        raise ValueError("no room")
        yield

    parts = {"perf.one": rows, "perf.two": broken}
    found = types.SimpleNamespace(
        import_module=lambda name: types.SimpleNamespace(__doc__="", rows=parts[name])
    )
    monkeypatch.setattr(bench, "importlib", found)
    assert bench.run(["two", "one"], tmp_path, quick=True, threads=1) == 1
    text = (tmp_path / "bench.md").read_text()
    assert "**two failed:** ValueError: no room" in text and "| a | 1234 |" in text
    assert "| cost | 3.5 | at most 3 x floor | no |" in text


def test_the_check_of_a_gpu_runs_in_miniature_on_a_cpu(tmp_path, monkeypatch):
    if gpu.CUDA:
        pytest.skip("there is a GPU")
    monkeypatch.setattr(gpu, "own_losses", lambda: ["smooth_ap", "fast_ap"])
    assert perf and gpu.main(tmp_path) == 0
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert "in miniature" in report["device"] and all(report[title] for title in gpu.PARTS)
