"""A ranking loss given by one method has what the losses with a derivative by hand have."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from pages import ROOT, blocks

from benchmark.core.options import option
from benchmark.losses import create_loss
from benchmark.losses.base import RankingLoss

torch.set_num_threads(1)

SIZES = (2, 3, 5, 7, 1, 4)


class PlainSmoothAP(RankingLoss):
    """SmoothAP as its formula stands."""

    @dataclass(frozen=True, kw_only=True)
    class Config(RankingLoss.Config):
        tau: float = option(0.01, above=0.0, help="sigmoid temperature")

    def per_query(self, scores, targets):
        gaps = scores.unsqueeze(1) - scores.unsqueeze(2)
        above = torch.sigmoid(gaps / self.config.tau)
        among = 0.5 + (above * targets.unsqueeze(1)).sum(2)
        precision = targets * among / (0.5 + above.sum(2))
        return 1 - precision.sum(1) / targets.sum(1)


class NoisySmoothAP(PlainSmoothAP):
    """A loss that draws: it hands its own function to the kernel that differentiates."""

    def rank(self, scores, relation, scale, gradient, generator):
        noise = torch.randn(scores.shape, generator=generator, dtype=scores.dtype)
        return super().rank(scores + 0.01 * noise, relation, scale, gradient, generator)


def rows(sizes=SIZES, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    centers = torch.randn(len(sizes), 8, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), 8, generator=generator, dtype=torch.float64)
    unit_rows = torch.nn.functional.normalize(centers[labels] + noise, dim=1)
    return unit_rows.to(dtype), labels


def value_and_gradients(loss, *inputs, memory=False):
    tensors = [item.clone().requires_grad_(item.is_floating_point()) for item in inputs]
    value = loss.with_memory(*tensors) if memory else loss(*tensors)
    value.backward()
    return value, [item.grad for item in tensors if item.is_floating_point()]


@pytest.mark.parametrize("include_query", [True, False])
@pytest.mark.parametrize("kind", ["own", "references", "memory"])
def test_values_and_gradients_are_those_of_the_hand_written_loss(include_query, kind):
    options = {"tau": 0.1, "include_query": include_query}
    plain = PlainSmoothAP(PlainSmoothAP.Config(**options))
    inputs = rows()
    if kind != "own":
        inputs += rows((3, 9, 1, 2), seed=5)
    memory = kind == "memory"
    value, gradients = value_and_gradients(plain, *inputs, memory=memory)
    fast = create_loss("smooth_ap", **options)
    expected, expected_gradients = value_and_gradients(fast, *inputs, memory=memory)
    # two orders of summation in float64
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert torch.allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-13)


def test_precision_is_float32_at_least_under_autocast():
    embeddings, labels = rows(dtype=torch.bfloat16)
    free = embeddings.clone().requires_grad_()
    loss = PlainSmoothAP(PlainSmoothAP.Config(tau=0.1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(free, labels)
    value.backward()
    assert value.dtype == torch.float32
    assert free.grad.dtype == torch.bfloat16
    exact = loss(embeddings.float(), labels)
    assert value.item() == pytest.approx(exact.item(), rel=1e-6)


def test_query_losses_have_the_gradient_of_each_row():
    embeddings, labels = rows()
    scores = (embeddings @ embeddings.T).requires_grad_()
    targets = labels.unsqueeze(1) == labels
    loss = PlainSmoothAP(PlainSmoothAP.Config(tau=0.1))
    values = loss.query_losses(scores, targets, self_pairs=True)
    assert values.isnan().nonzero().tolist() == [[17]]  # the class of one image
    (gradient,) = torch.autograd.grad(values.nansum(), scores)
    fast = create_loss("smooth_ap", tau=0.1).query_losses(scores, targets, self_pairs=True)
    (expected,) = torch.autograd.grad(fast.nansum(), scores)
    assert torch.allclose(gradient, expected, rtol=1e-9, atol=1e-13)


def test_without_gradients_nothing_is_differentiated():
    embeddings, labels = rows()
    loss = PlainSmoothAP(PlainSmoothAP.Config())
    with torch.no_grad():
        plain = loss(embeddings, labels)
    assert not plain.requires_grad
    value, _ = value_and_gradients(loss, embeddings, labels)
    assert plain.item() == value.item()


def test_a_loss_that_draws_overrides_the_kernel():
    loss = NoisySmoothAP(NoisySmoothAP.Config())
    values = []
    for seed in (1, 1, 2):
        value = loss(*rows(), generator=torch.Generator().manual_seed(seed))
        values.append(value.item())
    first, again, other = values
    assert first == again
    assert first != other


def test_the_loss_of_the_tutorial_keeps_what_every_loss_must_keep(tmp_path):
    page = blocks(ROOT / "docs" / "tutorial.md")
    code = next(block for block in page if block.language == "python")
    (tmp_path / "ramp_ap.py").write_text(code.text)
    contract = ROOT / "tests" / "contract" / "test_losses_contract.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "ramp_ap", "-k", "ramp_ap", str(contract)],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},  # for -p
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
