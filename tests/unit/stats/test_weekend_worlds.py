"""Forecasts of ``plan --within`` against 200 made-up worlds that the suite's own rule judges."""

from __future__ import annotations

import pytest
from error_rates.weekend import TRUTHS, against_worlds, plan_of

pytestmark = pytest.mark.rates
WORLDS = 200


@pytest.mark.parametrize("study", ["fast_ap", "listwise", "smooth_ap", "roadmap"])
def test_the_forecast_is_within_5_points_where_its_model_holds(study, monkeypatch):
    monkeypatch.delitem(TRUTHS, "spread twice")
    monkeypatch.delitem(TRUTHS, "heavy tails")
    monkeypatch.delitem(TRUTHS, "laboratories differ by 0.5")
    plan = plan_of(study)
    found = against_worlds(plan, WORLDS)
    assert set(found["kind"]) == set(plan.totals)
    for row in found.itertuples():
        total = plan.totals[row.kind]
        assert abs(row.forecast - row.simulated) <= 0.05 * total + 2 * row.error
