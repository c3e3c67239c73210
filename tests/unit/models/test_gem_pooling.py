"""GeM: the generalised mean whose power is learnt with the other weights."""

from __future__ import annotations

import pytest
import torch

from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model
from benchmark.models.embedding import Pooling


def gem(power: float) -> Pooling:
    pooling = Pooling("gem")
    torch.nn.init.constant_(pooling.power, power)
    return pooling


@pytest.fixture
def maps():
    return torch.rand(2, 5, 4, 4, generator=torch.Generator().manual_seed(0)) + 0.1


def test_the_power_starts_at_three_and_learns_at_the_rate_of_the_head():
    model = create_model(
        ModelConfig(backbone="resnet10t", channels=1, pooling="gem", embedding_dim=8), 0
    )
    assert model.pooling.power.item() == 3.0
    backbone, head = model.parameter_groups(10.0)
    assert any(parameter is model.pooling.power for parameter in head["params"])
    assert not any(parameter is model.pooling.power for parameter in backbone["params"])
    model(torch.rand(4, 1, 32, 32, generator=torch.Generator().manual_seed(0)))[
        :, 0
    ].sum().backward()
    assert model.pooling.power.grad.abs() > 0


def test_power_one_is_the_average_and_a_large_power_nears_the_maximum(maps):
    assert torch.allclose(gem(1.0)(maps), maps.mean(dim=(2, 3)))
    assert torch.allclose(gem(60.0)(maps), maps.amax(dim=(2, 3)), rtol=0.05)


def test_value_and_gradients_equal_the_formula(maps):
    pooling, double = gem(2.5).double(), maps.double().requires_grad_()
    expected = [
        [(sum(x**2.5 for x in channel) / 16) ** 0.4 for channel in image]
        for image in maps.flatten(2).tolist()
    ]
    assert torch.allclose(pooling(double), torch.tensor(expected, dtype=torch.float64))
    assert torch.autograd.gradcheck(
        lambda x, p: torch.func.functional_call(pooling, {"power": p}, x), (double, pooling.power)
    )


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_maps_without_activation_are_raised_to_the_floor_and_give_finite_gradients(value):
    pooling, maps = gem(3.0), torch.full((1, 2, 3, 3), value, requires_grad=True)
    pooled = pooling(maps)
    assert pooled.tolist() == [[pytest.approx(1e-6, rel=1e-3)] * 2]
    pooled.sum().backward()
    assert torch.isfinite(maps.grad).all() and torch.isfinite(pooling.power.grad)
