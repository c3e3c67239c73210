"""Progress in a log: lines, not bars, and not too many."""

from __future__ import annotations

import pytest

from benchmark.datasets.prepare import meter as metering
from benchmark.datasets.prepare.meter import Meter, format_bytes


@pytest.mark.parametrize(
    ("total", "unit", "line"),
    [
        (4000, "images", "packing: 25% (1,000 of 4,000 images)"),
        (4000, "B", "packing: 25% (1.0 kB of 4.0 kB)"),
        (None, "B", "packing: 1.0 kB"),
    ],
)
def test_a_log_gets_a_line_of_how_far_it_is(monkeypatch, capsys, total, unit, line):
    monkeypatch.setattr(metering, "LOG_SECONDS", 0.0)
    with Meter("packing", total, unit, done=400) as meter:
        meter.add(600)
    assert capsys.readouterr().err == line + "\n"


def test_a_log_is_not_flooded(capsys):
    with Meter("packing", 1000, "images") as meter:
        for _ in range(1000):
            meter.add(1)
    assert capsys.readouterr().err == ""


def test_amounts_are_written_as_people_write_them():
    assert [format_bytes(size) for size in (0, 999, 1000, 73_400_000, 2 * 10**9, 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "73.4 MB",
        "2.0 GB",
        "1000.0 TB",
    ]
