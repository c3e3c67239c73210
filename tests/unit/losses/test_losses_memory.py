"""A batch that queries itself and a memory: losses of pairs equal their formulas."""

from __future__ import annotations

import pytest
import torch

from benchmark.losses import create_loss
from benchmark.losses.base import Loss

torch.set_num_threads(1)

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3, 4])
# class 3 has a positive in the memory alone, class 4 none at all, class 5 is only in the memory
MEMORY_LABELS = torch.tensor([1, 0, 5, 3, 2, 2, 5, 0, 1, 5, 3])


def rows(count, seed):
    """Rows close enough for hinges on distances and cosines to bite."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 5, generator=generator, dtype=torch.float64) + 0.8


def unit(values):
    return torch.nn.functional.normalize(values, dim=1)


def distances(queries, labels, pool, pool_labels):
    """Yield the distances of each query to its positives and to its negatives; the query itself
    is in neither."""
    for query, label in enumerate(labels):
        others = torch.arange(len(pool)) != query
        distance = (queries[query] - pool).norm(dim=1)
        same = pool_labels == label
        yield distance[same & others], distance[~same & others]


def mean_over_nonzero(terms):
    terms = torch.cat(terms)
    return terms.sum() / max(1, (terms > 0).sum())


def contrastive(*sets):
    near = []
    far = []
    for positives, negatives in distances(*sets):
        near.append(positives)
        far.append((0.5 - negatives).clamp(min=0))
    return mean_over_nonzero(near) + mean_over_nonzero(far)


def triplet_semihard(*sets, margin=0.1):
    terms = []
    for positives, negatives in distances(*sets):
        gaps = negatives - positives.unsqueeze(1)
        semihard = (gaps > 0) & (gaps <= margin)
        terms.append(margin - gaps[semihard])
    return mean_over_nonzero(terms)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("contrastive", contrastive),
        ("triplet_semihard", triplet_semihard),
    ],
)
def test_loss_with_memory_equals_its_formula_and_reaches_the_batch_alone(name, formula):
    memory = unit(rows(len(MEMORY_LABELS), seed=1))

    def of_formula(queries, labels, memory, memory_labels):
        # the batch is a reference with its gradient, the memory one without
        pool = torch.cat([queries, memory])
        pool_labels = torch.cat([labels, memory_labels])
        return formula(queries, labels, pool, pool_labels)

    results = []
    for function in (create_loss(name).with_memory, of_formula):
        free = rows(len(LABELS), seed=2).requires_grad_()
        value = function(unit(free), LABELS, memory, MEMORY_LABELS)
        value.backward()
        results.append((value.item(), free.grad))
    (value, gradient), (expected, expected_gradient) = results
    assert value == pytest.approx(expected, rel=1e-9)
    assert expected_gradient.norm() > 1e-3
    assert torch.allclose(gradient, expected_gradient, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ["roadmap", "contrastive"])
def test_gradient_of_a_memory_that_asks_for_one_equals_that_of_a_nudge(name):
    queries = unit(rows(len(LABELS), seed=2))
    memory = unit(rows(len(MEMORY_LABELS), seed=1)).requires_grad_()

    def value(memory):
        return create_loss(name).with_memory(queries, LABELS, memory, MEMORY_LABELS)

    value(memory).backward()
    direction = rows(len(MEMORY_LABELS), seed=3)
    step = 1e-6 * direction
    rise = value(memory.detach() + step) - value(memory.detach() - step)
    slope = (memory.grad * direction).sum()
    assert rise.item() / 2e-6 == pytest.approx(slope.item(), rel=1e-4)


class MeanScore(Loss):
    """A loss that knows references, and nothing of memories."""

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        if reference_embeddings is None:
            reference_embeddings = embeddings
            reference_labels = labels
        scores = embeddings @ reference_embeddings.T
        same = labels.unsqueeze(1) == reference_labels
        return -scores[same].mean()


def test_loss_that_defines_forward_alone_ranks_batch_and_memory():
    loss = MeanScore(MeanScore.Config())
    batch = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    memory = torch.tensor([[0.0, 1.0], [0.8, 0.6]])
    labels = torch.tensor([0, 0])
    memory_labels = torch.tensor([1, 0])
    without = loss.with_memory(batch, labels, memory[:0], memory_labels[:0])
    assert without == loss(batch, labels)
    # same label: all four pairs inside the batch (1, .6, .6, 1) and each image with the second of
    # the memory
    expected = -(1 + 0.6 + 0.6 + 1 + 0.8 + (0.48 + 0.48)) / 6
    value = loss.with_memory(batch, labels, memory, memory_labels)
    assert value.item() == pytest.approx(expected)
