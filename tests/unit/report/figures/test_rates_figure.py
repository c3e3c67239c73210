"""The figure of the rule's error rates: what is drawn, and that the command writes it."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.report.drawing.drawing import to_svg
from benchmark.report.papers.rates import CURVES, draw_rates
from benchmark.stats.simulation import RuleScenario, rates, worst


@pytest.fixture(scope="module")
def table():
    rows = []
    for seeds in (1, 2, 5):
        for reference in ("single", "several"):
            for sigma in (0.1, 0.3):
                scenario = RuleScenario(seeds, reference, sigma, pooled=seeds == 1)
                rows.append({**vars(scenario), **rates(scenario, 100, 0)})
    return worst(pd.DataFrame(rows))


def test_both_references_show_errors_with_their_limit_and_power(table):
    figure = draw_rates(table, 100).figure
    errors, power = figure.axes[:2], figure.axes[2:]
    assert len(figure.axes) == 4
    for axes in errors:
        assert [5.0, 5.0] in [list(line.get_ydata()) for line in axes.lines]
        assert len(axes.lines) == 3
    assert all(len(axes.lines) == 2 for axes in power)


def test_the_marks_are_the_rates_in_percent_by_number_of_seeds(table):
    figure = draw_rates(table, 100).figure
    rows = table[table["reference"] == "single"].sort_values("ours_n")
    line = figure.axes[0].lines[0]
    assert list(line.get_xdata()) == [1, 2, 5]
    assert list(line.get_ydata()) == pytest.approx(list(100 * rows[next(iter(CURVES))]))


def test_equal_rates_give_equal_bytes(table):
    assert to_svg(draw_rates(table, 100)) == to_svg(draw_rates(table, 100))


def test_the_figure_belongs_to_the_rule_alone(tmp_path):
    for option in ("--stress", "--claims"):
        done = CliRunner().invoke(
            app, ["simulate", option, "--figure", str(tmp_path / "rates.svg")]
        )
        assert done.exit_code == 2 and "--figure" in done.output


def test_the_command_writes_the_figure(tmp_path):
    path = tmp_path / "rates.svg"
    done = CliRunner().invoke(app, ["simulate", "--tables", "100", "--figure", str(path)])
    assert f"wrote {path}" in done.output
    assert path.read_text().startswith("<?xml")
