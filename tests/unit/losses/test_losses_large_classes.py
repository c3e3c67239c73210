"""Queries with many positives: expansions and sorting give the numbers of looking at each pair."""

from __future__ import annotations

import pytest
import torch

from benchmark.losses import create_loss
from benchmark.losses.kernels.relation import Positives
from benchmark.losses.kernels.steps import Kernel, PanelGrid, Points, bell

torch.set_num_threads(1)

CASES = [
    ("smooth_ap", {}),
    ("smooth_ap", {"tau": 0.1, "include_query": False}),
    ("sup_ap", {}),
    ("sup_ap", {"offset": 1.44, "include_query": False}),
    ("sup_ap", {"delta": 0.0}),
    ("sup_ap", {"start": 0.0, "tau": 0.03, "rho": 7.0}),
    ("blackbox_ap", {"margin": 0.0}),
    ("blackbox_ap", {"margin": 0.0, "include_query": False}),
    ("recall_at_k", {}),
    ("sup_recall", {}),
    ("smooth_ndcg", {"include_query": False}),
    ("pnp", {}),
]


@pytest.fixture
def paths(monkeypatch):
    """Return a function that makes the losses take the path for many positives always, or never."""

    def choose(many: bool) -> None:
        least = 3 if many else 10**9
        for name in ("steps", "ranking"):
            monkeypatch.setattr(f"benchmark.losses.kernels.{name}.MANY_POSITIVES", least)
        monkeypatch.setattr("benchmark.losses.blackbox_ap.SORT_FROM_POSITIVES", least)
        # what the expansions work on has no placeholders among the negatives
        monkeypatch.setattr("benchmark.losses.kernels.relation.LEFT_OUT_FROM", 1)

    return choose


def batch(spread, dtype=torch.float64):
    """Three large classes and a small one, with ties; the smaller ``spread``, the better the
    ranking."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.tensor([40, 25, 12, 3])
    labels = torch.arange(4).repeat_interleave(sizes)
    centers = torch.randn(4, 12, generator=generator, dtype=torch.float64)
    noise = torch.randn(80, 12, generator=generator, dtype=torch.float64)
    rows = centers[labels] + spread * noise
    rows[3] = rows[45]
    rows[50] = rows[51]
    return torch.nn.functional.normalize(rows, dim=1).to(dtype), labels


def assert_close(found, expected, **tolerances):
    """Compare gradients, relative to the largest of all components."""
    largest = expected.abs().max()
    torch.testing.assert_close(found.double() / largest, expected / largest, **tolerances)


def value_and_gradient(name, hyperparameters, rows, labels):
    rows = rows.clone().requires_grad_()
    value = create_loss(name, **hyperparameters)(rows, labels)
    value.backward()
    return value.item(), rows.grad


@pytest.mark.parametrize("spread", [0.3, 3.0])
@pytest.mark.parametrize(("name", "hyperparameters"), CASES, ids=str)
def test_many_positives_give_the_same_loss_and_gradient(name, hyperparameters, spread, paths):
    rows, labels = batch(spread)
    paths(many=False)
    value, gradient = value_and_gradient(name, hyperparameters, rows, labels)
    paths(many=True)
    found, found_gradient = value_and_gradient(name, hyperparameters, rows, labels)
    assert found == pytest.approx(value, rel=1e-9)
    assert_close(found_gradient, gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["smooth_ap", "sup_ap"])
def test_many_positives_in_float32_are_close_to_float64(name, paths):
    paths(many=True)
    value, gradient = value_and_gradient(name, {}, *batch(3.0))
    found, found_gradient = value_and_gradient(name, {}, *batch(3.0, torch.float32))
    assert found == pytest.approx(value, rel=1e-5)
    assert_close(found_gradient, gradient, rtol=1e-3, atol=1e-4)


def test_queries_of_many_and_few_positives_share_a_batch(monkeypatch, paths):
    rows, labels = batch(1.0)
    paths(many=False)
    value, gradient = value_and_gradient("smooth_ap", {}, rows, labels)
    paths(many=True)
    for name in ("steps", "ranking"):
        monkeypatch.setattr(f"benchmark.losses.kernels.{name}.MANY_POSITIVES", 20)
    monkeypatch.setattr("benchmark.losses.kernels.ranking.LARGE_BLOCK", 200)  # a few rows at a time
    found, found_gradient = value_and_gradient("smooth_ap", {}, rows, labels)
    assert found == pytest.approx(value, rel=1e-9)
    assert torch.allclose(found_gradient, gradient, rtol=1e-9, atol=1e-12)


def relation_of(labels):
    return Positives.from_labels(labels, None, labels.device, own=True).rows(slice(0, len(labels)))


def one_class_of(count):
    return relation_of(torch.zeros(count, dtype=torch.long))


def test_no_grid_where_expansions_do_not_pay():
    rows, labels = batch(3.0)
    scores = rows @ rows.T
    relation = relation_of(labels)
    assert PanelGrid.over(scores, relation, 0.01) is None, "no class is large enough"
    large = one_class_of(200)
    spread = torch.linspace(-1, 1, 40_000, dtype=torch.float64).view(200, 200)
    assert PanelGrid.over(spread, large, 0.01) is not None
    assert PanelGrid.over(spread, large, 1e-6) is None, "too many panels"
    spread[3, 4] = float("nan")
    assert PanelGrid.over(spread, large, 0.01) is None, "not finite"


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("bend", [0.0, 0.7, 5.0, 11.0])
def test_sums_over_panels_equal_sums_over_pairs(rising, bend):
    generator = torch.Generator().manual_seed(1)
    sources = 20 * torch.rand(3, 50, generator=generator, dtype=torch.float64)
    places = 20 * torch.rand(3, 31, generator=generator, dtype=torch.float64)
    large = one_class_of(200)
    grid = PanelGrid.over(torch.cat([sources, places], dim=1), large, 1.0, bend)
    kernel = Kernel(grid, bell, lambda gap: 0.3 * gap - 2.0)
    points = Points(grid, sources)
    at = Points(grid, places)
    weights = torch.rand(3, 50, generator=generator, dtype=torch.float64)
    found = points.sums(kernel, at, rising=rising, weights=weights)
    gap = points.values.unsqueeze(2) - at.values.unsqueeze(1)
    if not rising:
        gap = -gap
    of_pairs = torch.where(gap > bend, 0.3 * gap - 2.0, bell(gap))
    expected = (of_pairs * weights.unsqueeze(2)).sum(1)
    assert torch.allclose(found, expected, rtol=1e-11, atol=1e-11)
    assert torch.equal(at.unsort(at.values), places)
