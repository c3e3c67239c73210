"""The baselines of Smooth-AP's comparison: one sampled triplet an anchor, and ProxyNCA's sum."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from benchmark.losses import create_loss


def batch(seed: int = 0, classes: int = 5, images: int = 4, dim: int = 8):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(classes * images, dim, dtype=torch.float64, generator=generator)
    return F.normalize(rows), torch.arange(classes).repeat_interleave(images)


def test_a_triplet_is_semi_hard_where_the_batch_has_one():
    embeddings, labels = batch()
    squared = torch.cdist(embeddings, embeddings) ** 2
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool)
    least = []
    most = []
    for row, own, other in zip(squared, positive, ~same, strict=True):
        positives = row[own][row[own] > row[other].min()]
        negatives = row[other][row[other] < row[own].max()]
        positives = positives if len(positives) else row[own]
        negatives = negatives if len(negatives) else row[other]
        gaps = (positives[:, None] - negatives + 0.2).clamp(min=0)
        least.append(gaps.min())
        most.append(gaps.max())
    loss = create_loss("triplet_per_anchor")
    values = {
        loss(embeddings, labels, generator=torch.Generator().manual_seed(seed)).item()
        for seed in range(20)
    }
    assert len(values) > 1
    assert sum(least) / len(least) - 1e-12 <= min(values)
    assert max(values) <= sum(most) / len(most) + 1e-12


def test_a_later_semi_hard_negative_is_farther_than_the_positive_by_less_than_the_gap():
    embeddings, labels = batch(classes=10, images=2, dim=3)
    distances = torch.cdist(embeddings, embeddings)
    least = []
    most = []
    wider = 0
    for anchor, row in enumerate(distances):
        own = row[anchor ^ 1]  # the other image of the class
        others = row[labels != labels[anchor]]
        band = others[(others > own) & (others < own + 0.2)]
        wider += bool(len(band))
        gaps = (own**2 - (band if len(band) else others) ** 2 + 0.5).clamp(min=0)
        least.append(gaps.min())
        most.append(gaps.max())
    assert wider >= 5, "several anchors have a negative in the band"
    loss = create_loss("triplet_per_anchor", margin=0.5, mining="semihard")
    values = [
        loss(embeddings, labels, generator=torch.Generator().manual_seed(seed)).item()
        for seed in range(20)
    ]
    assert len(set(values)) > 1
    assert sum(least) / len(least) - 1e-12 <= min(values)
    assert max(values) <= sum(most) / len(most) + 1e-12
    earlier = create_loss("triplet_per_anchor", margin=0.5)
    others = [
        earlier(embeddings, labels, generator=torch.Generator().manual_seed(seed)).item()
        for seed in range(20)
    ]
    assert min(others) > max(values), "the rule of before draws harder triplets"


def test_one_class_alone_costs_nothing_and_equal_seeds_give_equal_losses():
    embeddings, labels = batch()
    loss = create_loss("triplet_per_anchor")
    assert loss(embeddings, torch.zeros_like(labels)).item() == 0
    first, second = (
        loss(embeddings, labels, generator=torch.Generator().manual_seed(3)).item() for _ in "ab"
    )
    assert first == second


@pytest.mark.parametrize("scale", [1.0, 9.0])
def test_proxy_nca_over_other_proxies_is_the_formula_of_the_paper(scale):
    embeddings, labels = batch()
    sizes = {"embedding_dim": 8, "num_classes": 5, "seed": 1}
    loss = create_loss("proxy_nca_others", softmax_scale=scale, **sizes)
    value = loss(embeddings, labels)
    proxies = F.normalize(next(loss.parameters()).detach().double())
    expected = 0.0
    for row, label in zip(embeddings, labels.tolist(), strict=True):
        distances = scale * ((row - proxies) ** 2).sum(1)
        others = [index for index in range(5) if index != label]
        expected += distances[label] + torch.logsumexp(-distances[others], 0)
    assert value.item() == pytest.approx(expected.item() / len(labels), rel=1e-12)
    value.backward()
    assert next(loss.parameters()).grad.abs().sum() > 0
