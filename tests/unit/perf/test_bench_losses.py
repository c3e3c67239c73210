"""The loss benchmark measures what it says, and compares like with like."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import perf
import pytest
import torch
from perf import alternatives
from perf.losses import FLOOR, LIBRARY, OURS, measure, section_of_sizes, targets_of
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError
from benchmark.losses import create_loss
from benchmark.losses.conformance.memory import tensor_bytes

DENSE = {"smooth_ap": alternatives.dense_smooth_ap, "sup_ap": alternatives.dense_sup_ap}


def gradient(step, rows, labels):
    rows = rows.clone().requires_grad_()
    value = step(rows, labels)
    value.backward()
    return value.item(), rows.grad


@pytest.mark.parametrize("name", DENSE)
def test_dense_alternatives_equal_the_losses_they_are_compared_with(name):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(24, 8, generator=generator, dtype=torch.float64)
    rows = torch.nn.functional.normalize(rows, dim=1)
    labels = torch.arange(24) // 4
    value, slope = gradient(create_loss(name), rows, labels)
    expected, expected_slope = gradient(DENSE[name], rows, labels)
    assert value == pytest.approx(expected, rel=1e-6)
    assert torch.allclose(slope, expected_slope, rtol=1e-5, atol=1e-8)


def test_floor_is_the_backward_pass_of_a_score_matrix():
    rows = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    upstream = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    expected = rows.clone().requires_grad_()
    (expected @ expected.T).backward(upstream)
    _, slope = gradient(alternatives.floor(8), rows, None)
    assert torch.allclose(slope, expected.grad, rtol=1e-5, atol=1e-6)


def by_method(*arguments, **options):
    return {row["method"]: row for row in measure(*arguments, seconds=1.0, **options)}


def test_measure_times_ours_and_the_alternatives_with_ratios():
    rows = by_method(16, repeats=2)
    assert {FLOOR, LIBRARY, "PML FastAP", "dense SmoothAP", "dense SupAP", *OURS} == set(rows)
    assert rows[FLOOR]["times_floor"] == 1.0 and rows[LIBRARY]["times_faster"] == 1.0
    ours, library = rows["smooth_ap"], rows[LIBRARY]
    assert ours["times_faster"] == pytest.approx(library["milliseconds"] / ours["milliseconds"])


def test_large_classes_are_measured_without_what_needs_equal_ones():
    rows = by_method(32, repeats=1, classes="quarter")
    assert {FLOOR, "PML FastAP", *OURS} == set(rows)
    assert all(row["times_faster"] is None for row in rows.values())


def test_memory_of_the_dense_formula_grows_with_the_cube_and_ours_with_the_square():
    small, large = (by_method(size, repeats=1) for size in (32, 64))
    assert large["dense SmoothAP"]["peak_mb"] > 7 * small["dense SmoothAP"]["peak_mb"]
    assert large["smooth_ap"]["peak_mb"] < 5 * small["smooth_ap"]["peak_mb"]


def test_bytes_of_tensors_count_what_is_alive_at_once():
    def call():
        first = torch.empty(2**20, dtype=torch.uint8)
        second = torch.empty(2**21, dtype=torch.uint8)
        del first
        return torch.empty(2**19, dtype=torch.uint8), second

    assert tensor_bytes(call) == (2**20 + 2**21, 0)


GIVEN_BACK = """
from perf.memory import peak_of_process
print(peak_of_process(lambda: len(bytearray(b"x") * (256 * 2**20))))
"""


def test_peak_of_process_sees_memory_that_is_given_back():
    """In a process of its own: threads of other tests may give memory back at the same time."""
    command = [sys.executable, "-c", GIVEN_BACK]
    environment = os.environ | {"PYTHONPATH": str(Path(perf.__file__).parents[1])}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    if done.stdout.strip() == "None":
        pytest.skip("the system does not say")
    assert 200 * 2**20 < int(done.stdout) < 400 * 2**20


def test_section_has_one_row_per_method_and_size_and_draws_the_figure(tmp_path):
    shown = []
    section = section_of_sizes([8, 12], tmp_path / "bench", quick=True, show=shown.append)
    rows = list(csv.DictReader(section.write_csv(tmp_path / "bench").open()))
    assert {row["batch_size"] for row in rows} == {"8", "12"}
    assert len(rows) == 2 * (len(OURS) + 5) and len(shown) == 4
    assert all(float(row["milliseconds"]) > 0 for row in rows)
    assert "<svg" in (tmp_path / "bench" / "loss_time.svg").read_text()


def targets(method, batch_size, classes="balanced"):
    row = {"milliseconds": 20_000.0, "times_floor": 3.5, "times_faster": 120.0, "peak_mb": 100.0}
    row |= {"method": method, "batch_size": batch_size, "classes": classes}
    return [(target.bound, target.unit, target.met) for target in targets_of(row)]


def test_bounds_are_those_of_the_batch_size_and_the_loss():
    unit = f"x {LIBRARY}"
    assert targets("smooth_ap", 384) == [(3, "x floor", False), (150, unit, False)]
    assert targets("sup_ap", 384) == [(3, "x floor", False), (100, unit, True)]
    assert targets("roadmap", 1024) == [(4, "x floor", True)]
    assert targets("smooth_ap", 256) == targets(FLOOR, 4096) == []
    assert targets("roadmap", 4096, "quarter") == [(10, "s", False), (4, "GiB", True)]


def test_command_refuses_batch_sizes_that_the_classes_do_not_divide():
    result = CliRunner().invoke(app, ["bench", "losses", "--batch-sizes", f"30,x,²,{'9' * 5_000}"])
    assert isinstance(result.exception, ConfigError) and len(result.exception.problems) == 4
