"""Tiny runs give the curves on record: the same bits with portable kernels, close to them with
others."""

from __future__ import annotations

import json

import pytest
from golden_curves import FILE, curve_of, golden_runs, here

RECORD = json.loads(FILE.read_text())
# Machines that sum in another order: four times what the oldest instructions of one processor
# changed in losses (relative), and twice what they changed in scores (absolute).
LOSS_TOLERANCE = 0.02
SCORE_TOLERANCE = 0.04


@pytest.mark.parametrize("name", golden_runs())
def test_curve_is_the_one_on_record(name, tmp_path):
    ours = curve_of(golden_runs()[name], tmp_path)
    theirs = RECORD["runs"][name]
    if here() == RECORD["machine"]:
        assert ours == theirs
    assert ours["status"] == theirs["status"]
    assert len(ours["curve"]) == len(theirs["curve"])
    for mine, golden in zip(ours["curve"], theirs["curve"], strict=True):
        assert mine["loss"] == pytest.approx(golden["loss"], rel=LOSS_TOLERANCE)
        assert mine["test"] == pytest.approx(golden["test"], abs=SCORE_TOLERANCE)
