"""TF32 is switched on for the network's training passes, and off for everything else."""

import pytest
import torch
from torch import nn

from benchmark.core.recipe import TrainingConfig
from benchmark.losses import create_loss
from benchmark.training.numerics import grad_scaler, prepare_numerics, tf32
from benchmark.training.step import Stepper

CPU = torch.device("cpu")
IMAGES = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(8) // 2


def switches() -> tuple[bool, bool]:
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


class Noting(torch.autograd.Function):
    """Notes the switches as the network goes forward and backward."""

    @staticmethod
    def forward(ctx, rows, noted):
        ctx.noted = noted
        noted.append(switches())
        return rows.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.noted.append(switches())
        return gradient, None


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(48, 4)
        self.noted = []
        nn.init.orthogonal_(self.head.weight)

    def forward(self, images):
        return nn.functional.normalize(Noting.apply(self.head(images.flatten(1)), self.noted))


def stepped(config: TrainingConfig, loss: nn.Module) -> Network:
    prepare_numerics(config)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Stepper(model, loss, optimizer, grad_scaler(config, CPU), config, CPU, 0)(IMAGES, LABELS, 0)
    return model


@pytest.mark.parametrize("parts", [{}, {"micro_batch": 4}, {"micro_batch": 4, "staged": True}])
@pytest.mark.parametrize(("precision", "on"), [("tf32", True), ("float32", False)])
def test_forward_and_backward_pass_round_and_the_loss_does_not(parts, precision, on):
    inner = create_loss("smooth_ap")
    of_loss = []

    def loss(embeddings, labels, *, generator=None):
        of_loss.append(switches())
        return inner(embeddings, labels)

    model = stepped(TrainingConfig(precision=precision, **parts), loss)
    assert set(model.noted) == {(on, on)}
    assert len(model.noted) >= 2
    assert of_loss == [(False, False)] == [switches()]


def test_triplets_in_groups_round_too():
    model = stepped(TrainingConfig(precision="tf32", micro_batch=3), Grouped())
    assert set(model.noted) == {(True, True)}


class Grouped(nn.Module):
    group = 2

    def forward(self, embeddings, labels, *, generator=None):
        return embeddings.square().sum() + embeddings.sum()


def test_switches_come_back_after_an_error():
    prepare_numerics(TrainingConfig())
    with pytest.raises(ValueError, match="wrong"), tf32(TrainingConfig(precision="tf32")):
        assert switches() == (True, True)
        raise ValueError("wrong")
    assert switches() == (False, False)


def test_on_a_cpu_the_bits_are_those_of_float32():
    one, other = (
        stepped(TrainingConfig(precision=precision), create_loss("smooth_ap"))
        for precision in ("float32", "tf32")
    )
    assert torch.equal(one.head.weight, other.head.weight)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_products_of_a_step_round_to_ten_bits():
    rows = torch.full((64, 64), 1 + 2.0**-12, device="cuda")
    prepare_numerics(TrainingConfig())
    with tf32(TrainingConfig(precision="tf32")):
        rounded = rows @ rows
    assert torch.equal(rounded, torch.full_like(rounded, 64.0))
    assert not torch.equal(rows @ rows, rounded)
