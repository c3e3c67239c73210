"""Losses of pytorch-metric-learning by the name of their class, and under names of their own."""

from __future__ import annotations

import math
import re

import pytest
import torch

from benchmark.core.errors import ConfigError, RunError
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.catalogue import load_catalogue
from benchmark.losses.configs import NAMED
from benchmark.losses.library import CLASSES, REFUSED

torch.set_num_threads(1)
USABLE = [name for name in CLASSES["losses"] if name not in REFUSED]
# what has no default in the library
DEMANDED = {"RankedListLoss": {"margin": 0.4, "Tn": 10}}
MINERS = [name for name in CLASSES["miners"] if name not in REFUSED]


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(6).repeat_interleave(4)
    rows = torch.randn(24, 16, generator=generator) + 1.5 * torch.eye(6, 16)[labels]
    return torch.nn.functional.normalize(rows, dim=1), labels


def make(name, **options):
    return create_loss("pml", embedding_dim=16, num_classes=6, **{"class": name}, **options)


@pytest.mark.parametrize("name", USABLE)
def test_every_class_trains_by_its_name(name):
    rows, labels = batch()
    rows.requires_grad_()
    loss = make(name, params=DEMANDED.get(name, {}))
    value = loss(rows, labels, generator=torch.Generator().manual_seed(0))
    value.backward()
    assert value.isfinite()
    assert rows.grad.isfinite().all()
    assert rows.grad.norm() > 0


@pytest.mark.parametrize("name", USABLE)
def test_every_class_takes_a_memory_or_says_that_it_does_not(name):
    (rows, labels), (memory, others) = batch(), batch(1)
    loss = make(name, params=DEMANDED.get(name, {}))
    assert CLASSES["losses"][name]["references"] == loss.takes_references
    if loss.takes_references:
        assert loss.with_memory(rows, labels, memory, others).isfinite()
    else:
        with pytest.raises(RunError, match=f"{name} takes no references"):
            loss.with_memory(rows, labels, memory, others)


@pytest.mark.parametrize("name", MINERS)
def test_every_miner_chooses_for_a_loss(name):
    rows, labels = batch()
    loss = make("TripletMarginLoss", params={"margin": 0.5}, miner={"class": name})
    assert loss(rows, labels, generator=torch.Generator().manual_seed(0)).isfinite()


def test_a_miner_that_draws_depends_on_the_generator_alone():
    rows, labels = batch()
    loss = make("MarginLoss", miner={"class": "DistanceWeightedMiner"})
    values = [loss(rows, labels, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_a_class_is_checked_and_asked_about_references_before_there_is_a_loss():
    facts = load_catalogue()["pml"]
    assert [each.key for each in facts.problems({"class": "NPairsLoss"})] == []
    wrong = {"class": "CircleLoss", "params": {"gamma": "big"}}
    assert [each.key for each in facts.problems(wrong)] == ["params.gamma"]
    assert [each.key for each in facts.problems({"class": 1})] == ["class"]
    asked = [facts.takes_references({"class": name}) for name in ("CircleLoss", "NPairsLoss")]
    assert asked == [True, False]
    assert load_catalogue()["smooth_ap"].takes_references({})


def test_all_wrong_options_are_told_at_once():
    with pytest.raises(ConfigError) as error:
        make("CircleLoss", params={"mm": 1, "gamma": "big"}, miner={"class": "BatchHard"})
    message = str(error.value)
    assert "3 problems" in message
    assert "unknown key 'mm'; did you mean 'm'?" in message
    assert "Input should be a valid number, not 'big'" in message
    assert "unknown class 'BatchHard'; did you mean 'BatchHardMiner'?" in message


@pytest.mark.parametrize("name", ["SmoothAPLoss", "CrossBatchMemory", "GenericPairLoss"])
def test_classes_that_cannot_be_right_are_refused_with_the_reason(name):
    with pytest.raises(ConfigError, match=f"'{name}' is refused: ") as error:
        make(name)
    assert REFUSED[name] in str(error.value)


def test_smooth_ap_of_the_library_is_as_wrong_as_the_refusal_says():
    from pytorch_metric_learning.losses import SmoothAPLoss

    labels = torch.arange(96).repeat_interleave(4)
    perfect = torch.eye(96)[labels]
    assert SmoothAPLoss(temperature=0.01)(perfect, labels).item() == pytest.approx(0.71, abs=0.005)
    assert create_loss("smooth_ap")(perfect, labels).item() == pytest.approx(0.0, abs=1e-5)
    centres = torch.randn(96, 64, generator=torch.Generator().manual_seed(0))
    perfect = torch.nn.functional.normalize(centres, dim=1)[labels]
    assert SmoothAPLoss(temperature=0.01)(perfect, labels).item() == pytest.approx(0.68, abs=0.01)


def test_parts_of_parts_reach_the_library():
    distance = {"class": "LpDistance", "params": {"power": 2}}
    loss = make("TripletMarginLoss", params={"margin": 0.2, "distance": distance})
    assert loss.inner.distance.power == 2
    assert loss.inner.margin == 0.2


@pytest.mark.parametrize("name", NAMED)
def test_named_losses_declare_what_is_so(name):
    entry = NAMED[name]
    facts = LOSSES[name].facts
    known = CLASSES["losses"][entry["class"]]
    taken = set(known["parameters"])
    if "miner" in entry:
        taken |= set(CLASSES["miners"][entry["miner"]["class"]]["parameters"])
    assert set(entry.get("options", {})) <= taken
    assert facts["accepts_references"] == known["references"]
    assert (facts["kind"] == "proxy") == ("num_classes" in known["supplied"])
    # where each setting is from, in one of these words, or that there is none
    origins = r"\((authors|library)|authors' train.py|library's default|\bours\b"
    origins += "|No settings|no margin of its own"
    assert re.search(origins, entry["source"])


def test_named_losses_equal_their_class_with_these_settings():
    rows, labels = batch()
    named = create_loss("multi_similarity")(rows, labels)
    params = {"alpha": 2.0, "beta": 50.0, "base": 1.0}
    miner = {"class": "MultiSimilarityMiner", "params": {"epsilon": 0.1}}
    assert make("MultiSimilarityLoss", params=params, miner=miner)(rows, labels) == named


def test_values_of_formulas_written_out():
    rows, labels = batch()
    cosines = (rows @ rows.T).double()
    same = labels.unsqueeze(1) == labels
    own = torch.eye(24, dtype=torch.bool)
    # SupCon (Khosla et al., Eq. 2)
    exponent = (cosines / 0.1).masked_fill(own, -math.inf)
    log_share = exponent - exponent.logsumexp(1, keepdim=True)
    sup_con = -(log_share.masked_fill(~same | own, 0.0).sum(1) / 3).mean()
    assert create_loss("sup_con")(rows, labels).item() == pytest.approx(sup_con.item(), rel=1e-5)
    # Circle (Sun et al., Eq. 6 to 8 with m = 0.4, gamma = 80)
    near = cosines.masked_fill(~same | own, math.nan)
    far = cosines.masked_fill(same, math.nan)
    pull = -80 * (1.4 - near).clamp(min=0) * (near - 0.6)
    push = 80 * (far + 0.4).clamp(min=0) * (far - 0.4)
    both = [part.nan_to_num(-math.inf, -math.inf, -math.inf).logsumexp(1) for part in (pull, push)]
    circle = torch.nn.functional.softplus(sum(both)).mean()
    assert create_loss("circle")(rows, labels).item() == pytest.approx(circle.item(), rel=1e-5)
    # Multi-similarity without mining (Wang et al., Eq. 15)
    positive = torch.exp(-2 * (cosines - 1)).masked_fill(~same | own, 0).sum(1)
    negative = torch.exp(50 * (cosines - 1)).masked_fill(same, 0).sum(1)
    expected = (torch.log1p(positive) / 2 + torch.log1p(negative) / 50).mean()
    value = make("MultiSimilarityLoss", params={"alpha": 2, "beta": 50, "base": 1})(rows, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
