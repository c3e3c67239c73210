"""The figure of the rule's error rates: what is drawn, and that the command writes it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.report.drawing.drawing import to_svg
from benchmark.report.papers.rates import CURVES, draw_rates
from benchmark.stats.simulations.report import rule_table


@pytest.fixture(scope="module")
def table():
    return rule_table(100, seeds=(2, 5))


def test_all_references_show_errors_with_their_limit_and_power(table):
    figure = draw_rates(table, 100).figure
    errors, power = figure.axes[:3], figure.axes[3:]
    assert len(figure.axes) == 6
    for axes in errors:
        assert [5.0, 5.0] in [list(line.get_ydata()) for line in axes.lines]
        assert len(axes.lines) == 5  # two rates under two rules, and the limit
    assert all(len(axes.lines) == 4 for axes in power)


def test_the_marks_are_the_rates_in_percent_by_number_of_seeds(table):
    figure = draw_rates(table, 100).figure
    chosen = (table["reference"] == "single") & (table["rule"] == "shared spread")
    rows = table[chosen].sort_values("seeds")
    line = figure.axes[0].lines[0]
    assert list(line.get_ydata()) == pytest.approx(list(100 * rows[next(iter(CURVES))]))


def test_equal_rates_give_equal_bytes(table):
    assert to_svg(draw_rates(table, 100)) == to_svg(draw_rates(table, 100))


def test_the_figure_belongs_to_the_rule_alone(tmp_path):
    for option in ("--stress", "--claims", "--looks", "--frontier"):
        done = CliRunner().invoke(
            app, ["simulate", option, "--figure", str(tmp_path / "rates.svg")]
        )
        assert done.exit_code == 2 and "--figure" in done.output


def test_the_command_writes_the_figure(tmp_path):
    path = tmp_path / "rates.svg"
    done = CliRunner().invoke(app, ["simulate", "--tables", "100", "--figure", str(path)])
    assert f"wrote {path}" in done.output
    assert path.read_text().startswith("<?xml")
