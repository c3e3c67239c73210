"""Micro-batches: the gradients of the plain step, in the memory of a part, with the same chance in
both passes."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.core.recipe import MemoryConfig, ModelConfig, TrainingConfig
from benchmark.losses import create_loss
from benchmark.models import create_model
from benchmark.training.step import Memory, Stepper

CPU = torch.device("cpu")
SIZE = 12
LABELS = torch.arange(SIZE) // 3
NO_SCALING = torch.amp.GradScaler(enabled=False)


def images(dtype=torch.float64):
    return torch.randn(SIZE, 1, 32, 32, generator=torch.Generator().manual_seed(1), dtype=dtype)


def network(freeze=True):
    """A ResNet in float64 whose batch norms have statistics of their own."""
    config = ModelConfig(
        backbone="test_resnet", channels=1, embedding_dim=8, freeze_batch_norm=freeze
    )
    model = create_model(config, seed=3).double()
    generator = torch.Generator().manual_seed(2)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0.0, 0.1, generator=generator)
            layer.running_var.uniform_(0.5, 2.0, generator=generator)
    return model


def stepper(model, micro_batch, loss="roadmap", scaler=NO_SCALING, memory=None, classes=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loss = create_loss(loss, embedding_dim=8, num_classes=classes, seed=5)
    config = TrainingConfig(micro_batch=micro_batch)
    return Stepper(model, loss, optimizer, scaler, config, CPU, 0, memory)


def gradients(module):
    found = {name: value.grad for name, value in module.named_parameters()}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def assert_close(found, expected):
    """Compare gradients by name, relative to the largest of each."""
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        largest = gradient.abs().max().item()
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-9 * largest)


@pytest.mark.parametrize("loss", ["roadmap", "blackbox_ap", "contrastive", "proxy_nca"])
@pytest.mark.parametrize("micro_batch", [1, 4, 5, 11])
def test_gradients_equal_those_of_the_plain_step(loss, micro_batch):
    found = []
    for size in (None, micro_batch):
        model = network()
        step = stepper(model, size, loss)
        step.loss.double()
        step(images(), LABELS, 0)
        found.append((step.drain()[0], {**gradients(model), **gradients(step.loss)}))
    (plain_value, plain), (value, staged) = found
    assert value == pytest.approx(plain_value, rel=1e-12)
    assert len(plain) > 10
    assert sum(gradient.norm() for gradient in plain.values()) > 1e-3
    assert_close(staged, plain)


def test_gradients_with_a_memory_equal_those_of_the_plain_step():
    found = []
    for size in (None, 5):
        model = network()
        memory = Memory(MemoryConfig(size=-1), LABELS.repeat(2), 8, CPU)
        rows = torch.nn.functional.normalize(torch.ones(6, 8).tril(-1) + 0.1)
        memory.store(rows, np.arange(6, 12))
        step = stepper(model, size, memory=memory)
        step(images(), LABELS, 0, np.arange(3, 3 + SIZE))
        found.append((gradients(model), memory.state_dict()["embeddings"]))
    (plain, stored), (staged, stored_by_staged) = found
    assert_close(staged, plain)
    torch.testing.assert_close(stored_by_staged, stored)


@pytest.mark.parametrize("micro_batch", [SIZE, SIZE + 1])
def test_micro_batch_that_holds_the_batch_is_the_plain_step_to_the_bit(micro_batch):
    found = []
    for size in (None, micro_batch):
        model = network(freeze=False)
        step = stepper(model, size)
        step(images(), LABELS, 0)
        found.append({**gradients(model), **dict(model.named_buffers())})
    plain, staged = found
    torch.testing.assert_close(staged, plain, rtol=0, atol=0)


def test_stages_are_those_of_fastap():
    """Embeddings in test mode; then parts with statistics and an update of their own."""
    expected = network(freeze=False)
    trained = network(freeze=False)
    whole = network(freeze=False)
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.1)
    expected.eval()
    with torch.no_grad():
        rows = expected(images())
    rows.requires_grad_()
    create_loss("fast_ap", embedding_dim=8, num_classes=4, seed=5)(rows, LABELS).backward()
    expected.train()
    for part in (slice(0, 5), slice(5, 10), slice(10, 12)):
        optimizer.zero_grad()
        expected(images()[part]).backward(rows.grad[part])
        optimizer.step()
    for model, config in (
        (trained, TrainingConfig(micro_batch=5, staged=True)),
        (whole, TrainingConfig(micro_batch=SIZE, staged=True)),
    ):
        step = stepper(model, 5, "fast_ap")
        step.config = config
        step.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step(images(), LABELS, 0)
    found = trained.state_dict()
    other = whole.state_dict()
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(other["head.weight"], found["head.weight"], rtol=1e-3)


class Noisy(nn.Module):
    """A layer of dropout before a head; keeps every output it gives."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32 * 32, 8)
        self.seen: list[torch.Tensor] = []

    def forward(self, batch):
        rows = nn.functional.dropout(batch.flatten(1).float(), 0.5)
        self.seen.append(nn.functional.normalize(self.head(rows)))
        return self.seen[-1]


def test_second_pass_repeats_the_dropout_of_the_first():
    model = Noisy()
    step = stepper(model, 5)
    step(images(), LABELS, 0)
    first = model.seen[:3]
    second = model.seen[3:]
    assert [len(part) for part in first] == [5, 5, 2]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    # parts of one batch, and equal parts of two steps, must not share their noise
    same = torch.ones(SIZE, 1, 32, 32)
    model.seen.clear()
    step(same, LABELS, 1)
    step(same, LABELS, 2)
    assert not torch.equal(model.seen[0], model.seen[1])
    assert not torch.equal(model.seen[0], model.seen[6])


def test_scaled_loss_gives_scaled_gradients_and_an_unscaled_update():
    found = []
    for scaler in (NO_SCALING, torch.amp.GradScaler("cpu", init_scale=2.0**10)):
        model = network()
        step = stepper(model, 5, scaler=scaler)
        step.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step(images(), LABELS, 0)
        found.append(model.state_dict())
    start = network().state_dict()
    assert any(not torch.equal(start[name], found[0][name]) for name in start)
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-9, atol=1e-12)


def peak_saved_bytes(micro_batch):
    """Return the most bytes that autograd held at one time for the backward pass, parameters left
    out."""
    model = network()
    own = {parameter.data_ptr() for parameter in [*model.parameters(), *model.buffers()]}
    held = {"now": 0, "peak": 0}

    class Saved:
        pass

    def release(size):
        held["now"] -= size

    def pack(tensor):
        saved = Saved()
        saved.tensor = tensor
        if tensor.data_ptr() not in own:
            size = tensor.numel() * tensor.element_size()
            held["now"] += size
            held["peak"] = max(held["peak"], held["now"])
            weakref.finalize(saved, release, size)
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        stepper(model, micro_batch)(images(), LABELS, 0)
    return held["peak"]


def test_backward_pass_holds_one_micro_batch():
    whole = peak_saved_bytes(None)
    assert peak_saved_bytes(3) < 0.3 * whole  # 3 of 12 images
    assert peak_saved_bytes(6) < 0.55 * whole
