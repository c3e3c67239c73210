"""Losses that draw random numbers take a generator of any device, and keep to it."""

import itertools
import math

import pytest
import torch

from benchmark.losses import LOSSES, create_loss

STOCHASTIC = [entry.name for entry in LOSSES if entry.facts["stochastic"]]
DRAWING = [(name, {}) for name in STOCHASTIC]
DRAWING.append(("recall_at_k", {"simix": True}))
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
PLACES = list(itertools.product(DEVICES, [None, *DEVICES]))
LABELS = torch.arange(32) // 4


def drawn(name: str, options: dict, at: str, source: str | None) -> list[float]:
    """Return two values of a loss in a row, of rows on ``at`` and a generator on ``source``."""
    free = torch.randn(32, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = torch.nn.functional.normalize(free, dim=1).to(at)
    loss = create_loss(name, embedding_dim=8, num_classes=8, **options).double().to(at)
    generator = None
    if source is not None:
        generator = torch.Generator(source).manual_seed(1)
    torch.manual_seed(1)
    values = [loss(rows, LABELS, generator=generator) for _ in range(2)]
    return [value.item() for value in values]


@pytest.mark.parametrize(("name", "options"), DRAWING)
@pytest.mark.parametrize(("at", "source"), PLACES)
def test_a_loss_draws_with_a_generator_of_any_device(name, options, at, source):
    first, second = drawn(name, options, at, source)
    assert math.isfinite(first)
    assert math.isfinite(second)
    assert [first, second] == drawn(name, options, at, source)


@pytest.mark.parametrize(("name", "options"), DRAWING)
def test_a_generator_is_used_where_it_is_given(name, options):
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    loss = create_loss(name, embedding_dim=8, num_classes=8, **options)
    rows = torch.nn.functional.normalize(torch.eye(8)[LABELS] + 0.1, dim=1)
    loss(rows, LABELS, generator=generator)
    assert not torch.equal(generator.get_state(), before)
