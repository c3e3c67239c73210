"""What the losses are compared with: the bare score matrix, and formulas over all triples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Step = Callable[[Tensor, Tensor], Tensor]  # embeddings (B, D), labels (B,) -> scalar loss


class Floor(torch.autograd.Function):
    """The score matrix E E^T, and the two products of its backward pass with a given gradient."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, upstream: Tensor) -> Tensor:
        scores = embeddings @ embeddings.T
        ctx.save_for_backward(embeddings, upstream)
        return scores[0, 0]

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        embeddings, upstream = ctx.saved_tensors
        return upstream @ embeddings + upstream.T @ embeddings, None


def floor(batch_size: int) -> Step:
    """Return the cheapest step that a loss of the score matrix could be."""
    upstream = torch.randn(batch_size, batch_size, generator=torch.Generator().manual_seed(0))
    return lambda embeddings, labels: Floor.apply(embeddings, upstream.to(embeddings))


def dense_smooth_ap(embeddings: Tensor, labels: Tensor, tau: float = 0.01) -> Tensor:
    """SmoothAP over all triples at once (Smooth-AP Eq. 5 to 7): time and memory O(B^3)."""
    steps = torch.sigmoid(_differences(embeddings) / tau)
    targets, others = _masks(labels)
    rank = 1 + (steps * others).sum(2)
    rank_positive = 1 + (steps * others * targets.unsqueeze(1)).sum(2)
    return _mean_loss(rank_positive / rank, targets)


def dense_sup_ap(
    embeddings: Tensor, labels: Tensor, tau: float = 0.01, rho: float = 100.0, delta: float = 0.05
) -> Tensor:
    """SupAP over all triples at once (ROADMAP Eq. 3 to 5): time and memory O(B^3)."""
    gaps = _differences(embeddings)
    targets, others = _masks(labels)
    positive = targets.unsqueeze(1)
    curve = torch.sigmoid(gaps / tau) + 0.5 * (gaps >= 0)
    top = torch.sigmoid(torch.tensor(delta / tau)) + 0.5
    above = torch.where(gaps > delta, rho * (gaps - delta) + top, curve)
    rank_positive = 1 + ((gaps >= 0) * others * positive).sum(2)
    rank_negative = (above * (1 - positive)).sum(2)
    return _mean_loss(rank_positive / (rank_positive + rank_negative), targets)


def _differences(embeddings: Tensor) -> Tensor:
    """Return s_qj - s_qk at [q, k, j], (B, B, B)."""
    scores = embeddings @ embeddings.T
    return scores.unsqueeze(1) - scores.unsqueeze(2)


def _masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return which items are positives of which query (B, B), and which pairs (k, j) differ."""
    targets = (labels.unsqueeze(1) == labels).float()
    return targets, 1 - torch.eye(len(labels), device=labels.device)


def _mean_loss(precision: Tensor, targets: Tensor) -> Tensor:
    return 1 - ((precision * targets).sum(1) / targets.sum(1)).mean()
