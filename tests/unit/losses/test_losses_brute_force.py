"""Each loss equals its formula, on random shapes with ties, singletons and unequal classes."""

from __future__ import annotations

import functools

import losses_formulas as formulas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.losses import create_loss

torch.set_num_threads(1)

# name, hyperparameters, formula of one query, whether the query counts as its own positive
RANKING = [
    ("smooth_ap", {"tau": 0.1}, functools.partial(formulas.smooth_ap, tau=0.1), True),
    ("smooth_ap", {"include_query": False}, formulas.smooth_ap, False),
    ("sup_ap", {}, formulas.sup_ap, True),
    ("sup_ap", {"offset": 1.44}, functools.partial(formulas.sup_ap, offset=1.44), True),
    ("sup_ap", {"start": 0.0}, functools.partial(formulas.sup_ap, start=0.0), True),
    (
        "sup_ap",
        {"include_query": False, "rho": 7.0},
        functools.partial(formulas.sup_ap, rho=7.0),
        False,
    ),
    ("fast_ap", {}, functools.partial(formulas.soft_binned_ap, centers=11), False),
    ("fast_ap", {"bins": 3}, functools.partial(formulas.soft_binned_ap, centers=4), False),
    ("softbin_ap", {}, functools.partial(formulas.soft_binned_ap, centers=20), True),
    (
        "softbin_ap",
        {"include_query": False},
        functools.partial(formulas.soft_binned_ap, centers=20),
        False,
    ),
    ("blackbox_ap", {"margin": 0.0}, formulas.exact_ap, True),
    ("blackbox_ap", {"margin": 0.0, "include_query": False}, formulas.exact_ap, False),
    (
        "blackbox_ap",
        {"margin": 0.25, "fixed_margin": True},
        functools.partial(formulas.exact_ap, margin=0.25),
        True,
    ),
]
IDS = [f"{name}-{hyperparameters}" for name, hyperparameters, _, _ in RANKING]


@st.composite
def batches(draw):
    """Unit rows with unequal classes, among 20 directions whose cosines are 0, +-1/2 and +-1
    without rounding, so that duplicates and exact ties are the rule."""
    size = draw(st.integers(3, 9))
    corner = st.tuples(*[st.sampled_from([-0.5, 0.5])] * 4)
    axis = st.sampled_from(torch.eye(4).tolist())
    rows = draw(st.lists(st.one_of(corner, axis), min_size=size, max_size=size))
    labels = torch.tensor(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    labels[1] = labels[0]
    return torch.tensor([list(row) for row in rows], dtype=torch.float64), labels


def expected_mean(embeddings, labels, formula, include_query):
    scores = embeddings @ embeddings.T
    values = []
    for i in range(len(labels)):
        if (labels == labels[i]).sum() < 2:
            continue
        keep = [j for j in range(len(labels)) if include_query or j != i]
        values.append(formula(scores[i, keep], (labels == labels[i])[keep]))
    return sum(values) / len(values)


@pytest.mark.parametrize(("name", "hyperparameters", "formula", "include_query"), RANKING, ids=IDS)
@settings(max_examples=25, deadline=None)
@given(batch=batches())
def test_ranking_loss_equals_its_formula_with_ties(
    name, hyperparameters, formula, include_query, batch
):
    embeddings, labels = batch
    loss = create_loss(name, **hyperparameters)(embeddings, labels)
    expected = float(expected_mean(embeddings, labels, formula, include_query))
    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "hyperparameters", "formula", "include_query"),
    [case for case in RANKING if case[0] != "blackbox_ap"],
    ids=[i for i in IDS if "blackbox" not in i],
)
def test_gradient_equals_that_of_the_formula(name, hyperparameters, formula, include_query):
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.randn(13, 5, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 0, 1])
    gradients = []
    for loss in (
        create_loss(name, **hyperparameters),
        lambda e, y: expected_mean(e, y, formula, include_query),
    ):
        free = embeddings.clone().requires_grad_()
        unit = torch.nn.functional.normalize(free, dim=1)
        loss(unit, labels).backward()
        gradients.append(free.grad)
    assert torch.allclose(*gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reduction", ["pairs", "nonzero"])
@settings(max_examples=25, deadline=None)
@given(batch=batches())
def test_calibration_equals_its_formula(reduction, batch):
    embeddings, labels = batch
    loss = create_loss("calibration", reduction=reduction)(embeddings, labels)
    expected = formulas.calibration(embeddings, labels, reduction=reduction)
    assert loss.item() == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("reduction", ["pairs", "nonzero"])
def test_calibration_gradient_equals_that_of_the_formula(reduction):
    generator = torch.Generator().manual_seed(5)
    base = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
    noise = torch.randn(10, 6, generator=generator, dtype=torch.float64)
    embeddings = base.repeat_interleave(torch.tensor([3, 2, 5]), 0) * 0.4 + noise + 1.5
    gradients = []
    for loss in (
        create_loss("calibration", reduction=reduction),
        functools.partial(formulas.calibration, reduction=reduction),
    ):
        free = embeddings.clone().requires_grad_()
        loss(torch.nn.functional.normalize(free, dim=1), labels).backward()
        gradients.append(free.grad)
    assert gradients[0].norm() > 0.01
    assert torch.allclose(*gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lambda_val", [0.5, 4.0, 50.0])
def test_blackbox_gradient_is_the_difference_quotient_of_the_ranker(lambda_val):
    generator = torch.Generator().manual_seed(0)
    scores = (torch.rand(7, 23, generator=generator, dtype=torch.float64) * 2 - 1).requires_grad_()
    targets = torch.rand(7, 23, generator=generator) < 0.3
    targets[:, 0] = True
    loss = create_loss("blackbox_ap", margin=0.0, lambda_val=lambda_val)
    loss.query_losses(scores, targets).sum().backward()
    expected = [
        formulas.blackbox_gradient(s.detach(), t, 1, lambda_val)
        for s, t in zip(scores, targets, strict=True)
    ]
    assert torch.allclose(scores.grad, torch.stack(expected), rtol=1e-9, atol=1e-12)
    assert scores.grad.abs().max() > 0


def test_blocks_do_not_change_the_result(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    unit = torch.nn.functional.normalize(
        torch.randn(40, 6, generator=generator, dtype=torch.float64), dim=1
    )
    labels = torch.tensor([0] * 20 + [1] * 10 + [2] * 6 + [3] * 4)
    cases = [
        ("smooth_ap", {}),
        ("smooth_ap", {"include_query": False}),
        ("sup_ap", {}),
        ("sup_ap", {"offset": 1.44}),
        ("recall_at_k", {}),
        ("sup_recall", {}),
        ("smooth_ndcg", {}),
        ("pnp", {}),
    ]
    for name, extra in [*cases, ("blackbox_ap", {"margin": 0.0})]:
        results = []
        # small blocks, and negatives left out instead of overwritten
        for elements, many in ((2**19, 64), (100, 64), (2**19, 1), (100, 5)):
            monkeypatch.setattr("benchmark.losses.kernels.relation.CPU_ELEMENTS", elements)
            monkeypatch.setattr("benchmark.losses.kernels.relation.LEFT_OUT_FROM", many)
            free = unit.clone().requires_grad_()
            value = create_loss(name, **extra)(free, labels)
            value.backward()
            results.append((value.detach(), free.grad))
        for value, gradient in results[1:]:
            assert torch.allclose(results[0][0], value, rtol=1e-12)
            assert torch.allclose(results[0][1], gradient, rtol=1e-9, atol=1e-13)
