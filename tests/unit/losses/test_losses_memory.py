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


def pairs(labels, pool_labels):
    """Yield (query, positives, negatives) as lists of references; the query itself is in
    neither."""
    for i, label in enumerate(labels.tolist()):
        others = [j for j in range(len(pool_labels)) if j != i]
        yield (
            i,
            [j for j in others if pool_labels[j] == label],
            [j for j in others if pool_labels[j] != label],
        )


def mean_over_nonzero(terms):
    return sum(terms) / max(1, sum(bool(term > 0) for term in terms))


def contrastive(queries, labels, pool, pool_labels):
    near = []
    far = []
    for i, positives, negatives in pairs(labels, pool_labels):
        near += [(queries[i] - pool[j]).norm() for j in positives]
        far += [(0.5 - (queries[i] - pool[j]).norm()).clamp(min=0) for j in negatives]
    return mean_over_nonzero(near) + mean_over_nonzero(far)


def triplet_semihard(queries, labels, pool, pool_labels, margin=0.1):
    terms = []
    for i, positives, negatives in pairs(labels, pool_labels):
        for near in [(queries[i] - pool[j]).norm() for j in positives]:
            gaps = [(queries[i] - pool[j]).norm() - near for j in negatives]
            terms += [margin - gap for gap in gaps if 0 < gap <= margin]
    return mean_over_nonzero(terms)


@pytest.mark.parametrize(
    ("name", "formula"), [("contrastive", contrastive), ("triplet_semihard", triplet_semihard)]
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
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-9)
    assert results[1][1].norm() > 1e-3
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ["roadmap", "contrastive"])
def test_gradient_of_a_memory_that_asks_for_one_equals_that_of_a_nudge(name):
    queries = unit(rows(len(LABELS), seed=2))
    memory = unit(rows(len(MEMORY_LABELS), seed=1)).requires_grad_()

    def value(memory):
        return create_loss(name).with_memory(queries, LABELS, memory, MEMORY_LABELS)

    value(memory).backward()
    direction = rows(len(MEMORY_LABELS), seed=3)
    step = 1e-6 * direction
    slope = (value(memory.detach() + step) - value(memory.detach() - step)) / 2e-6
    assert slope.item() == pytest.approx((memory.grad * direction).sum().item(), rel=1e-4)


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
        pool = embeddings if reference_embeddings is None else reference_embeddings
        same = labels.unsqueeze(1) == (labels if reference_labels is None else reference_labels)
        return -(embeddings @ pool.T)[same].mean()


def test_loss_that_defines_forward_alone_ranks_batch_and_memory():
    loss = MeanScore(MeanScore.Config())
    batch = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    memory = torch.tensor([[0.0, 1.0], [0.8, 0.6]])
    labels = torch.tensor([0, 0])
    memory_labels = torch.tensor([1, 0])
    assert loss.with_memory(batch, labels, memory[:0], memory_labels[:0]) == loss(batch, labels)
    # same label: all four pairs inside the batch (1, .6, .6, 1) and each image with the second of
    # the memory
    expected = -(1 + 0.6 + 0.6 + 1 + 0.8 + (0.48 + 0.48)) / 6
    assert loss.with_memory(batch, labels, memory, memory_labels).item() == pytest.approx(expected)
