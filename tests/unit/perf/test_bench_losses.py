"""The loss benchmark measures what it says, and compares like with like."""

from __future__ import annotations

import csv

import pytest
import torch
from perf import alternatives
from perf.losses import FLOOR, OURS, RIVAL, Timing, measure, measured_section, targets_of
from perf.memory import peak_of_process, peak_of_tensors
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError
from benchmark.losses import create_loss


def gradient(step, rows, labels):
    rows = rows.clone().requires_grad_()
    value = step(rows, labels)
    value.backward()
    return value.item(), rows.grad


def test_dense_alternatives_equal_the_losses_they_are_compared_with():
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(
        torch.randn(24, 8, generator=generator, dtype=torch.float64), dim=1
    )
    labels = torch.arange(24) // 4
    for name, dense in [
        ("smooth_ap", alternatives.dense_smooth_ap),
        ("sup_ap", alternatives.dense_sup_ap),
    ]:
        value, slope = gradient(create_loss(name), rows, labels)
        expected, expected_slope = gradient(dense, rows, labels)
        assert value == pytest.approx(expected, rel=1e-6)
        assert torch.allclose(slope, expected_slope, rtol=1e-5, atol=1e-8)


def test_floor_is_the_backward_pass_of_a_score_matrix():
    rows = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    upstream = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    expected = rows.clone().requires_grad_()
    (expected @ expected.T).backward(upstream)
    _, slope = gradient(alternatives.floor(8), rows, None)
    assert torch.allclose(slope, expected.grad, rtol=1e-5, atol=1e-6)


def test_measure_times_ours_and_the_alternatives_with_ratios():
    timings = {item.method: item for item in measure(16, repeats=2, seconds=1.0)}
    assert {FLOOR, RIVAL, "PML FastAP", "dense SmoothAP", "dense SupAP", *OURS} == set(timings)
    assert timings[FLOOR].times_floor == 1.0 and timings[RIVAL].faster_than_rival == 1.0
    ours = timings["smooth_ap"]
    assert ours.faster_than_rival == pytest.approx(timings[RIVAL].milliseconds / ours.milliseconds)


def test_large_classes_are_measured_without_what_needs_equal_ones():
    timings = {item.method: item for item in measure(32, repeats=1, seconds=1.0, classes="quarter")}
    assert {FLOOR, "PML FastAP", *OURS} == set(timings)
    assert all(
        item.classes == "quarter" and item.faster_than_rival is None for item in timings.values()
    )


def test_memory_of_the_dense_formula_grows_with_the_cube_and_ours_with_the_square():
    peaks = [
        {item.method: item.peak_mb for item in measure(size, repeats=1, seconds=0.1)}
        for size in (32, 64)
    ]
    assert peaks[1]["dense SmoothAP"] > 7 * peaks[0]["dense SmoothAP"]
    assert peaks[1]["smooth_ap"] < 5 * peaks[0]["smooth_ap"]


def test_peak_of_tensors_counts_what_is_alive_at_once():
    def call():
        first = torch.empty(2**20, dtype=torch.uint8)
        second = torch.empty(2**21, dtype=torch.uint8)
        del first
        return torch.empty(2**19, dtype=torch.uint8), second

    assert peak_of_tensors(call) == 2**20 + 2**21


def test_peak_of_process_sees_memory_that_is_given_back():
    found = peak_of_process(lambda: len(bytearray(b"x") * (64 * 2**20)))
    if found is None:
        pytest.skip("the system does not say")
    assert 60 * 2**20 < found < 200 * 2**20


def test_section_has_one_row_per_method_and_size_and_draws_the_figure(tmp_path):
    shown = []
    section = measured_section([8, 12], tmp_path / "bench", quick=True, show=shown.append)
    rows = list(csv.DictReader(section.write_csv(tmp_path / "bench").open()))
    assert {row["batch_size"] for row in rows} == {"8", "12"}
    assert len(rows) == 2 * (len(OURS) + 5) and len(shown) == 2
    assert all(float(row["milliseconds"]) > 0 for row in rows)
    assert "<svg" in (tmp_path / "bench" / "loss_time.svg").read_text()


def timing(method, batch_size, classes="balanced", **changes):
    values = {
        "milliseconds": 20_000.0,
        "times_floor": 3.5,
        "faster_than_rival": 120.0,
        "peak_mb": 100.0,
    } | changes
    return Timing(
        batch_size, classes, method, quartiles="", repeats=1, threads=2, load=0.0, **values
    )


def test_bounds_are_those_of_the_batch_size_and_the_loss():
    smooth = targets_of(timing("smooth_ap", 384))
    assert [(target.bound, target.met) for target in smooth] == [(3, False), (150, False)]
    assert [(target.bound, target.met) for target in targets_of(timing("sup_ap", 384))] == [
        (3, False),
        (100, True),
    ]
    assert [target.met for target in targets_of(timing("roadmap", 1024))] == [True]
    assert targets_of(timing("smooth_ap", 256)) == targets_of(timing(FLOOR, 4096)) == []
    largest = targets_of(timing("roadmap", 4096, "quarter"))
    assert [(target.unit, target.met) for target in largest] == [("s", False), ("GiB", True)]


def test_command_refuses_batch_sizes_that_the_classes_do_not_divide():
    result = CliRunner().invoke(app, ["bench", "losses", "--batch-sizes", "30,x"])
    assert isinstance(result.exception, ConfigError) and len(result.exception.problems) == 2


@pytest.mark.slow
def test_losses_beat_the_library_by_far():
    timings = {item.method: item for item in measure(384, repeats=5, seconds=5.0)}
    # the true ratios are several times higher; the bounds leave room for a busy machine
    assert all(timings[name].faster_than_rival > 20 for name in ("smooth_ap", "sup_ap", "roadmap"))
