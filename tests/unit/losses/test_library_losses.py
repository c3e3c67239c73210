"""Losses of pytorch-metric-learning by the name of their class, and under names of their own."""

from __future__ import annotations

import math
import re

import pytest
import torch
from pytorch_metric_learning import losses, miners

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
    rows = torch.randn(24, 16, generator=generator)
    rows += 1.5 * torch.eye(6, 16)[labels]
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
    sets = (*batch(), *batch(1))
    loss = make(name, params=DEMANDED.get(name, {}))
    assert CLASSES["losses"][name]["references"] == loss.takes_references
    if loss.takes_references:
        assert loss.with_memory(*sets).isfinite()
    else:
        with pytest.raises(RunError, match=f"{name} takes no references"):
            loss.with_memory(*sets)


@pytest.mark.parametrize("name", MINERS)
def test_every_miner_chooses_for_a_loss(name):
    rows, labels = batch()
    loss = make("TripletMarginLoss", params={"margin": 0.5}, miner={"class": name})
    value = loss(rows, labels, generator=torch.Generator().manual_seed(0))
    assert value.isfinite()


def test_a_miner_that_draws_depends_on_the_generator_alone():
    rows, labels = batch()
    loss = make("MarginLoss", miner={"class": "DistanceWeightedMiner"})
    values = []
    for seed in (1, 1, 2):
        generator = torch.Generator().manual_seed(seed)
        values.append(loss(rows, labels, generator=generator))
    first, again, other = values
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"class": "NPairsLoss"}, []),
        ({"class": "CircleLoss", "params": {"gamma": "big"}}, ["params.gamma"]),
        ({"class": 1}, ["class"]),
    ],
)
def test_a_class_is_checked_before_there_is_a_loss(options, keys):
    problems = load_catalogue()["pml"].problems(options)
    assert [problem.key for problem in problems] == keys


@pytest.mark.parametrize(
    ("name", "options", "taken"),
    [
        ("pml", {"class": "CircleLoss"}, True),
        ("pml", {"class": "NPairsLoss"}, False),
        ("smooth_ap", {}, True),
    ],
)
def test_a_class_is_asked_about_references_before_there_is_a_loss(name, options, taken):
    assert load_catalogue()[name].takes_references(options) == taken


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
    theirs = losses.SmoothAPLoss(temperature=0.01)
    labels = torch.arange(96).repeat_interleave(4)
    perfect = torch.eye(96)[labels]
    assert theirs(perfect, labels).item() == pytest.approx(0.71, abs=0.005)
    ours = create_loss("smooth_ap")(perfect, labels)
    assert ours.item() == pytest.approx(0.0, abs=1e-5)
    centres = torch.randn(96, 64, generator=torch.Generator().manual_seed(0))
    perfect = torch.nn.functional.normalize(centres, dim=1)[labels]
    assert theirs(perfect, labels).item() == pytest.approx(0.68, abs=0.01)


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


@pytest.mark.parametrize(
    ("name", "theirs", "miner"),
    [
        ("contrastive", losses.ContrastiveLoss(pos_margin=0.0, neg_margin=0.5), None),
        (
            "triplet_semihard",
            losses.TripletMarginLoss(margin=0.1),
            miners.TripletMarginMiner(margin=0.1, type_of_triplets="semihard"),
        ),
        ("sup_con", losses.SupConLoss(temperature=0.1), None),
        ("circle", losses.CircleLoss(m=0.4, gamma=80), None),
        (
            "multi_similarity",
            losses.MultiSimilarityLoss(alpha=2.0, beta=50.0, base=1.0),
            miners.MultiSimilarityMiner(epsilon=0.1),
        ),
    ],
)
def test_named_losses_equal_their_class_with_the_settings_of_its_paper(name, theirs, miner):
    rows, labels = batch()
    mined = miner and miner(rows, labels)
    expected = theirs(rows, labels, mined)
    assert create_loss(name)(rows, labels).item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.fixture
def compared():
    """Return rows and labels, their cosines, which pairs share a class, and which are one row."""
    rows, labels = batch()
    cosines = (rows @ rows.T).double()
    same = labels.unsqueeze(1) == labels
    return rows, labels, cosines, same, torch.eye(24, dtype=torch.bool)


def test_sup_con_is_equation_2_of_khosla(compared):
    rows, labels, cosines, same, itself = compared
    exponent = (cosines / 0.1).masked_fill(itself, -math.inf)
    log_share = exponent - exponent.logsumexp(1, keepdim=True)
    of_positives = log_share.masked_fill(~same | itself, 0.0)
    expected = -(of_positives.sum(1) / 3).mean()
    value = create_loss("sup_con")(rows, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_circle_is_equations_6_to_8_of_sun(compared):
    rows, labels, cosines, same, itself = compared
    near = cosines.masked_fill(~same | itself, math.nan)
    far = cosines.masked_fill(same, math.nan)
    pull = -80 * (1.4 - near).clamp(min=0) * (near - 0.6)
    push = 80 * (far + 0.4).clamp(min=0) * (far - 0.4)
    pulls = pull.nan_to_num(-math.inf).logsumexp(1)
    pushes = push.nan_to_num(-math.inf).logsumexp(1)
    expected = torch.nn.functional.softplus(pulls + pushes).mean()
    value = create_loss("circle")(rows, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_multi_similarity_is_equation_15_of_wang(compared):
    rows, labels, cosines, same, itself = compared
    positive = torch.exp(-2 * (cosines - 1)).masked_fill(~same | itself, 0).sum(1)
    negative = torch.exp(50 * (cosines - 1)).masked_fill(same, 0).sum(1)
    expected = (torch.log1p(positive) / 2 + torch.log1p(negative) / 50).mean()
    params = {"alpha": 2, "beta": 50, "base": 1}
    value = make("MultiSimilarityLoss", params=params)(rows, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
