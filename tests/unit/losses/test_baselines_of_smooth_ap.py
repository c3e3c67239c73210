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


def drawn_values(sets, **options):
    """Return the values of the loss of sampled triplets under twenty seeds."""
    loss = create_loss("triplet_per_anchor", **options)
    values = []
    for seed in range(20):
        value = loss(*sets, generator=torch.Generator().manual_seed(seed))
        values.append(value.item())
    return values


def assert_between(values, least, most):
    """Check that values differ, between the means of bounds of each anchor."""
    assert len(set(values)) > 1
    assert torch.stack(least).mean() - 1e-12 <= min(values)
    assert max(values) <= torch.stack(most).mean() + 1e-12


def test_a_triplet_is_semi_hard_where_the_batch_has_one():
    embeddings, labels = batch()
    squared = torch.cdist(embeddings, embeddings) ** 2
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool)
    least = []
    most = []
    for row, own, other in zip(squared, positive, ~same, strict=True):
        positives = row[own & (row > row[other].min())]
        negatives = row[other & (row < row[own].max())]
        if not len(positives):
            positives = row[own]
        if not len(negatives):
            negatives = row[other]
        gaps = (positives[:, None] - negatives + 0.2).clamp(min=0)
        least.append(gaps.min())
        most.append(gaps.max())
    assert_between(drawn_values((embeddings, labels)), least, most)


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
        if len(band):
            wider += 1
            others = band
        gaps = (own**2 - others**2 + 0.5).clamp(min=0)
        least.append(gaps.min())
        most.append(gaps.max())
    assert wider >= 5, "several anchors have a negative in the band"
    values = drawn_values((embeddings, labels), margin=0.5, mining="semihard")
    assert_between(values, least, most)
    of_earlier_rule = drawn_values((embeddings, labels), margin=0.5)
    assert min(of_earlier_rule) > max(values), "the rule of before draws harder triplets"


def test_one_class_alone_costs_nothing_and_equal_seeds_give_equal_losses():
    embeddings, labels = batch()
    loss = create_loss("triplet_per_anchor")
    of_one_class = loss(embeddings, torch.zeros_like(labels))
    assert of_one_class.item() == 0
    assert drawn_values((embeddings, labels)) == drawn_values((embeddings, labels))


@pytest.mark.parametrize("scale", [1.0, 9.0])
def test_proxy_nca_over_other_proxies_is_the_formula_of_the_paper(scale):
    embeddings, labels = batch()
    sizes = {"embedding_dim": 8, "num_classes": 5, "seed": 1}
    loss = create_loss("proxy_nca_others", softmax_scale=scale, **sizes)
    value = loss(embeddings, labels)
    proxies = F.normalize(next(loss.parameters()).detach().double())
    expected = 0.0
    for row, label in zip(embeddings, labels, strict=True):
        distances = scale * (row - proxies).square().sum(1)
        others = torch.arange(5) != label
        expected += distances[label] + torch.logsumexp(-distances[others], 0)
    assert value.item() == pytest.approx(expected.item() / len(labels), rel=1e-12)
    value.backward()
    assert next(loss.parameters()).grad.abs().sum() > 0
