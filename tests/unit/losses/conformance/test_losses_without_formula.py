"""``conform`` without ``--as``: what every ranking loss must have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmark.losses.conformance import itself

FOLDER = Path(__file__).parent
torch.set_num_threads(1)
FAULTS = {  # the first check that fails, and its words
    "part_detached": (itself.SLOPES, "the gradient says"),
    "no_gradient": (itself.SLOPES, "no gradient reaches the embeddings"),
    "nan_without_positives": ("no positives", "returned nan"),
    "constant_without_positives": ("no positives", "backward() raises"),
    "hides_nan": ("NaN", "with NaN in the first row the value is 0"),
    "overflows_in_float32": ("no positives", "value inf, expected 0.88"),
    "first_row_is_special": ("order of images", "value"),
    "of_names": ("names of labels", "value"),
    "nan_with_one_class": ("one class", "returned nan"),
}


def findings(source):
    _, *found = itself.findings(source, itself.Itself(source, {}, None), False)
    assert [outcome.check for outcome in found] == [*itself.CHECKS[:-1]]
    return {outcome.check: outcome for outcome in found}


def failed(found):
    return {check for check, outcome in found.items() if outcome.result == "failed"}


def test_a_right_loss_passes():
    found = findings(f"{FOLDER / 'planted_without_formula.py'}:soft_margin")
    assert failed(found) == set()
    assert found[itself.SLOPES].result == found["values, float32"].result == "passed"
    assert "rows of length 1" in found["length of rows"].note


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(name):
    found = findings(f"{FOLDER / 'planted_without_formula.py'}:{name}")
    check, words = FAULTS[name]
    assert next(each for each in found if each in failed(found)) == check
    assert words in found[check].note


@pytest.mark.parametrize("name", ["MultiSimilarityLoss", "SupConLoss", "FastAPLoss"])
def test_losses_of_a_library_pass(name):
    found = findings(f"pytorch_metric_learning.losses:{name}")
    assert failed(found) == set()
    assert found["length of rows"].result == "passed"


def test_losses_of_the_suite_pass():
    assert failed(findings("benchmark.losses.rank_losses:SmoothAP")) == set()


def test_hinges_have_kinks_and_still_a_gradient():
    found = findings("pytorch_metric_learning.losses:TripletMarginLoss")
    assert failed(found) == {"NaN"}


def test_float32_inside_is_too_coarse_for_differences():
    found = findings(f"{FOLDER / 'right_losses.py'}:float32_inside")
    assert found[itself.SLOPES].result == "not applicable"
    assert failed(found) == {"no positives"}
