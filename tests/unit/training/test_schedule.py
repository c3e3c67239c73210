"""Learning-rate schedules at their turning points, and the rates of single parameters."""

from __future__ import annotations

import pytest
import torch

from benchmark.core.recipe import ModelConfig, OptimizerConfig, ScheduleConfig
from benchmark.losses import create_loss
from benchmark.models import create_model
from benchmark.training.numerics import create_optimizer, learning_rate_factor


def factor(done: float, epochs: int = 10, **config) -> float:
    return learning_rate_factor(ScheduleConfig(**config), int(done), done - int(done), epochs)


def test_constant_is_one():
    assert factor(3.5, name="constant") == 1.0


def test_step_multiplies_after_each_milestone():
    steps = {"name": "step", "milestones": [2, 5], "gamma": 0.3}
    assert [factor(at, **steps) for at in (1.9, 2.0, 4.9, 5.0)] == pytest.approx(
        [1, 0.3, 0.3, 0.09]
    )


def test_an_epoch_that_is_given_twice_counts_twice_as_in_torch():
    """Smooth-AP's code of 2020 had these milestones, which torch takes unsorted."""
    authors = [200, 300, 300, 120, 220, 250, 280]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, authors, gamma=0.3)
    rates = []
    for _ in range(400):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    ours = {"name": "step", "milestones": sorted(authors), "gamma": 0.3}
    assert [factor(epoch, epochs=400, **ours) for epoch in range(400)] == pytest.approx(rates)
    assert rates[-1] == pytest.approx(0.3**7)
    falls = {epoch for epoch in range(1, 400) if rates[epoch] < rates[epoch - 1]}
    assert falls == {120, 200, 220, 250, 280, 300}


@pytest.mark.parametrize(("decay", "same"), [(0.0, True), (1e-4, False)])
def test_adam_takes_no_notice_of_a_factor_on_the_loss_but_for_weight_decay(decay, same):
    ends = []
    for scale in (1.0, 2.0):
        weight = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([weight], lr=1e-2, weight_decay=decay)
        for step in range(20):
            optimizer.zero_grad()
            (scale * 1e-4 * torch.sin(weight + step).sum()).backward()
            optimizer.step()
        ends.append(weight.tolist())
    assert (ends[0] == pytest.approx(ends[1], rel=1e-4)) == same


def test_linear_reaches_zero_at_the_end():
    assert factor(0, name="linear") == 1.0
    assert factor(9.999, name="linear") == pytest.approx(0.0001)


def test_one_cycle_peaks_where_it_says_and_ends_low():
    values = [factor(at / 10, name="one_cycle", peak_at=0.3) for at in range(100)]
    assert values[0] == pytest.approx(1 / 25)
    assert max(values) == values[30]
    assert values[30] == pytest.approx(1.0)
    assert values[99] < 0.01


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, 0),
        (1, 0.5),
        (2, 1),
        (3, 1),
    ],
)
def test_warmup_rises_linearly_from_zero(epoch, expected):
    found = factor(epoch, name="constant", warmup_epochs=2.0)
    assert found == pytest.approx(expected)


def test_proxies_may_have_a_rate_and_a_decay_of_their_own():
    model = create_model(ModelConfig(backbone="test_resnet", channels=1, embedding_dim=8), seed=0)
    loss = create_loss("proxy_nca", embedding_dim=8, num_classes=4, seed=0)
    found = []
    for own in ({}, {"proxy_lr_multiplier": 1.0, "proxy_weight_decay": 0.0}):
        config = OptimizerConfig(head_lr_multiplier=2.0, weight_decay=4e-4, **own)
        groups = create_optimizer(config, model, loss).param_groups
        found.append([(group["lr_multiplier"], group["weight_decay"]) for group in groups])
    assert found == [
        [(1.0, 4e-4), (2.0, 4e-4), (2.0, 4e-4)],
        [(1.0, 4e-4), (2.0, 4e-4), (1.0, 0.0)],
    ]
