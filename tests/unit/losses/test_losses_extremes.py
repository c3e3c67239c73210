"""Input that training should never see: right values or a clear error, on random shapes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses_formulas import SOFT_AMONG_POSITIVES

from benchmark.core.errors import RunError
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import RankingLoss, ScoreLoss

torch.set_num_threads(1)

EVERY = [name for name in LOSSES.names() if LOSSES[name].facts["kind"] not in ("none", "triplets")]
SCORED = [name for name in LOSSES.names() if issubclass(LOSSES[name].target, ScoreLoss)]
RANKING = [name for name in SCORED if issubclass(LOSSES[name].target, RankingLoss)]
CLASSES = 6


def make(name, dim=4):
    extra = {"margin": 0.0} if name == "blackbox_ap" else {}
    return create_loss(name, embedding_dim=dim, num_classes=CLASSES, **extra)


@st.composite
def batches(draw, least_classes=1):
    """Unit rows float64 of random shape, with at least one positive pair."""
    classes = draw(
        st.lists(st.integers(1, 7), min_size=least_classes, max_size=CLASSES).filter(
            lambda n: max(n) > 1
        )
    )
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor(classes))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    labels = labels[torch.randperm(len(labels), generator=generator)]
    rows = torch.randn(
        len(labels), draw(st.integers(2, 20)), generator=generator, dtype=torch.float64
    )
    return torch.nn.functional.normalize(rows, dim=1), labels


def differentiate(loss, rows, labels):
    rows = rows.detach().clone().requires_grad_()
    value = loss(rows, labels)
    value.backward()
    return value.detach(), rows.grad


@pytest.mark.parametrize("name", [*SCORED, "triplet_semihard"])
@settings(max_examples=6, deadline=None)
@given(count=st.integers(1, 30), dim=st.integers(1, 12))
def test_a_batch_without_a_positive_pair_is_refused(name, count, dim):
    rows, labels = torch.nn.functional.normalize(torch.ones(count, dim), dim=1), torch.arange(count)
    for loss, others in (
        (make(name), ()),
        (make(name), (rows, labels + count)),
        (make(name).with_memory, (rows, ~labels)),
    ):
        with pytest.raises(RunError, match="no query of this batch has a positive"):
            loss(rows, labels, *others)
    # what the batch lacks, a reference may have
    assert make(name)(rows, labels, rows, labels).isfinite()
    assert make(name).with_memory(rows, labels, rows, labels).isfinite()


def test_contrastive_pushes_negatives_apart_where_there_is_no_positive_pair():
    rows = torch.tensor([[1.0, 0.0], [0.96, 0.28], [-1.0, 0.0]])
    value, gradient = differentiate(make("contrastive"), rows, torch.arange(3))
    # of the three pairs one is closer than the margin of 0.5
    assert value.item() == pytest.approx(0.5 - math.hypot(0.04, 0.28), rel=1e-6)
    assert gradient[:2].norm(dim=1).min() > 0.1


@pytest.mark.parametrize("name", [n for n in RANKING if n not in SOFT_AMONG_POSITIVES])
@settings(max_examples=6, deadline=None)
@given(count=st.integers(2, 25), dim=st.integers(2, 12), seed=st.integers(0, 99))
def test_a_single_class_is_ranked_perfectly(name, count, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.nn.functional.normalize(
        torch.randn(count, dim, generator=generator, dtype=torch.float64), dim=1
    )
    value, gradient = differentiate(make(name), rows, torch.zeros(count, dtype=torch.long))
    assert value.item() == pytest.approx(0.0, abs=1e-12)
    assert torch.allclose(gradient, torch.zeros_like(gradient), atol=1e-10)


@settings(max_examples=6, deadline=None)
@given(batch=batches(least_classes=2))
def test_exact_ranks_of_collapsed_embeddings_are_the_worst_of_the_tie(batch):
    rows, labels = batch
    value = make("blackbox_ap")(
        torch.full((len(rows), 4), 0.5), labels
    )  # cosines are 1 without rounding
    sizes = (labels.unsqueeze(1) == labels).sum(1)
    expected = 1.0 - (sizes[sizes > 1] / len(labels)).double().mean()
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=6, deadline=None)
@given(batch=batches(), where=st.integers(0, 10**6))
def test_embeddings_that_are_not_finite_never_give_a_finite_loss(name, bad, batch, where):
    rows, labels = batch
    # in any image, whether it has a positive or not
    rows = rows.clone()
    rows[where % len(rows), where % rows.shape[1]] = bad
    assert not torch.isfinite(make(name, rows.shape[1])(rows, labels))
