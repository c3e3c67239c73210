"""The tables of ``make error-rates``, from few draws: goals are held and misses are seen."""

from __future__ import annotations

import pytest
from error_rates.page import main
from error_rates.rule import PLANS, missed_goals, rule_table, sequence_table, world_table


@pytest.fixture(scope="module")
def rules():
    return rule_table(200, seeds=(3,))


def test_both_rules_stand_side_by_side_and_no_goal_is_missed(rules):
    assert rules.groupby("reference")["rule"].nunique().eq(2).all()
    assert missed_goals(rules).empty


def test_a_rate_above_its_goal_or_too_little_power_is_a_miss(rules):
    for column in ("any_drifted_low", "any_drifted_varied_low", "reproduced_at_margin_low"):
        assert len(missed_goals(rules.assign(**{column: 0.07}))) == 3
    assert len(missed_goals(rules.assign(drift_seen_high=0.7))) == 1  # against one value alone


def test_marks_of_sensitivity_take_most_wrong_verdicts_out():
    found = world_table(100, seeds=(3,)).set_index("world")
    for name in ("any_drifted", "reproduced_at_margin"):
        assert (found[f"{name}_unmarked"] <= found[name]).all()
    assert found.loc["published spread x 2", "any_drifted"] > 0.1
    assert found.loc["published spread x 2", "any_drifted_unmarked"] < 0.05
    assert found.loc["laboratories differ by 0.5", "reproduced_at_margin"] > 0.2
    assert found.loc["laboratories differ by 0.5", "reproduced_at_margin_unmarked"] < 0.05


def test_every_plan_of_looks_has_a_row():
    assert len(sequence_table(100)) == 2 * len(PLANS)


def test_the_page_has_every_table_and_its_figure(tmp_path):
    main(20, 5, tmp_path)
    text = (tmp_path / "error_rates.md").read_text()
    assert "{" not in text and text.count("| one value |") == 4
    assert (tmp_path / "error_rates.svg").read_text().startswith("<?xml")
