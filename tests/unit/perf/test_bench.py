"""The benchmark measures what it says, and compares like with like."""

from types import SimpleNamespace

import pytest
import torch
from perf import bench, evaluation, gpu, losses
from perf.timing import Target, peak_of_process

from benchmark.losses import create_loss


@pytest.mark.parametrize("name", ["smooth_ap", "sup_ap"])
def test_dense_alternatives_equal_the_losses_they_are_compared_with(name):
    rows, labels = losses.batch(24, 8)
    value, slope = gpu.backward(create_loss(name), rows.double(), labels)
    expected = gpu.backward(getattr(losses, f"dense_{name}"), rows.double(), labels)
    assert value.item() == pytest.approx(expected[0].item(), rel=1e-6)
    assert torch.allclose(slope, expected[1], rtol=1e-5, atol=1e-8)


def test_losses_and_evaluation_are_measured_beside_floor_and_library():
    rows = {row["method"]: row for row in losses.beside_library(16, 2, 1.0)}
    others = {losses.FLOOR, "PML FastAP", *losses.OURS}
    assert {losses.LIBRARY, "dense SmoothAP", "dense SupAP", *others} == set(rows)
    assert rows[losses.FLOOR]["times_floor"] == rows[losses.LIBRARY]["times_faster"] == 1.0
    assert others == {row["method"] for row in losses.beside_library(32, 1, 1.0, "quarter")}
    scores = {row["method"]: row for row in evaluation.measure(60, 60, 1, dim=8)}
    assert scores[evaluation.FLOOR]["times_floor"] == 1 and scores[evaluation.OURS]["peak_mb"] >= 0


def test_peak_of_process_sees_memory_that_is_given_back():
    grown = peak_of_process(lambda: len(bytearray(b"x") * (256 * 2**20)))
    assert grown > 200 * 2**20


def test_a_part_that_fails_is_named_and_the_worst_number_is_shown(tmp_path, monkeypatch):
    def one(quick):
        costs = [Target("cost", value, 3, "x floor") for value in (2.0, 3.5, 1.0)]
        yield {"method": "a", "ms": 1234.5, "targets": costs}

    def two(quick):
        raise ValueError("no room")
        yield

    module = SimpleNamespace(one=one, two=two)
    monkeypatch.setattr(bench, "importlib", SimpleNamespace(import_module=lambda name: module))
    parts = dict.fromkeys(("two", "one"), "module")
    assert bench.run(parts, tmp_path, quick=True, threads=1, seconds={}) == (True, True)
    text = (tmp_path / "bench.md").read_text()
    assert "**two failed:** ValueError: no room" in text and "| a | 1234 |" in text
    assert "| cost | 3.5 | at most 3 x floor | no |" in text


def test_the_check_of_a_gpu_runs_in_miniature_on_a_cpu(tmp_path, monkeypatch):
    if gpu.CUDA:
        pytest.skip("there is a GPU")
    monkeypatch.setattr(gpu, "OWN", ["smooth_ap", "fast_ap"])
    assert gpu.main(tmp_path) == 0
    text = (tmp_path / "bench.md").read_text()
    assert "no GPU" in text and all(f"## {part}\n" in text for part in gpu.PARTS)
