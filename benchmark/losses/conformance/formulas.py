"""The ranking losses as their papers write them: dense, one query at a time, by autograd.

Each function returns the loss of one query from the scores (R,) of the ranked items and which of
them are positives, boolean (R,). ``queries`` is the number of queries that the mean is taken over;
only BlackBoxAP's gradient depends on it. They are written to be read; nothing here is fast.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _gaps(scores: Tensor, positive: Tensor) -> Tensor:
    """Return by how much item j scores above positive k, at [k, j] (P, R)."""
    return scores - scores[positive].unsqueeze(1)


def _others(positive: Tensor) -> Tensor:
    """Return whether item j is another one than positive k, at [k, j] (P, R)."""
    return positive.nonzero() != torch.arange(len(positive))


def _smooth(scores: Tensor, positive: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """Return the rank of each positive among the positives and among all (P,), by a sigmoid."""
    tau = config.tau if hasattr(config, "tau") else 1.0 / config.alpha
    above = torch.sigmoid(_gaps(scores, positive) / tau) * _others(positive)
    return 1.0 + above[:, positive].sum(1), 1.0 + above.sum(1)


def _bounded(scores: Tensor, positive: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """Return the ranks, exact among the positives, from above among the negatives."""
    gaps = _gaps(scores, positive)
    among = 1.0 + ((gaps >= 0) * _others(positive))[:, positive].sum(1)
    gaps = gaps[:, ~positive]
    offset = config.offset
    if offset is None:
        offset = 1.0 / (1.0 + math.exp(-config.delta / config.tau)) + config.start
    near = torch.sigmoid(gaps / config.tau) + config.start * (gaps >= 0)
    far = config.rho * (gaps - config.delta) + offset
    return among, among + torch.where(gaps > config.delta, far, near).sum(1)


def _precision(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    return (among / rank).mean()


def _recall(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    """Return the mean over k of the soft number of positives among the first k / min(k, P)."""
    t, most = config.temperature, len(rank)
    recalls = [torch.sigmoid((k - rank) / t).sum() / min(k, most) for k in config.ks]
    return torch.stack(recalls).mean()


def _gain(among: Tensor, rank: Tensor, config: Any) -> Tensor:
    """Return the sum of 1 / log2(1 + rank) over its largest value."""
    best = torch.arange(1, len(rank) + 1, dtype=rank.dtype)
    return (1.0 / torch.log2(1.0 + rank)).sum() / (1.0 / torch.log2(1.0 + best)).sum()


def _one_minus(measure: Callable, ranks: Callable) -> Callable:
    """Return the loss of one query that is 1 - a measure of the ranks of its positives."""

    def loss(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
        return 1.0 - measure(*ranks(scores, positive, config), config)

    return loss


smooth_ap = _one_minus(_precision, _smooth)  # Smooth-AP, Eq. 5 to 7
sup_ap = _one_minus(_precision, _bounded)  # ROADMAP, Eq. 3 to 5
smooth_recall = _one_minus(_recall, _smooth)  # HAPPIER's framework, TPAMI 2025
sup_recall = _one_minus(_recall, _bounded)
smooth_ndcg = _one_minus(_gain, _smooth)  # of positives that are equally relevant
sup_ndcg = _one_minus(_gain, _bounded)
approx_ndcg = _one_minus(_gain, _smooth)  # Qin et al., 2010, Eq. 13


def pnp(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return the mean over positives of a penalty of the negatives before each (PNP, AAAI 2022)."""
    before = torch.sigmoid(_gaps(scores, positive) / config.tau)[:, ~positive].sum(1)
    b = config.b
    penalties = {
        "O": before,
        "D_s": torch.log(1.0 + before),
        "D_q": 1.0 - 1.0 / (1.0 + before) ** config.alpha,
        "I_u": (1.0 + before) * torch.log(1.0 + before),
        "I_b": (b * before - torch.log(1.0 + b * before)) / b**2,
    }
    return penalties[config.variant].mean()


def recall_at_k(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - the mean over k of a soft Recall@k (Patel et al., CVPR 2022, Eq. 6 to 8).

    An own query is an item that is ranked, and no positive.
    """
    _, rank = _smooth(scores, positive, config)
    temperatures = config.temperatures * (len(config.ks) if len(config.temperatures) == 1 else 1)
    recalls = []
    for k, temperature in zip(config.ks, temperatures, strict=True):
        hits = torch.sigmoid((k - rank) / temperature).sum()
        recalls.append(hits.clamp(max=k) / min(k, len(rank)))
    return 1.0 - torch.stack(recalls).mean()


def fast_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - AP of a histogram of distances^2 with ``bins`` intervals (FastAP, Eq. 14)."""
    return _histogram_ap(scores, positive, config.bins + 1, tie_aware=False)


def softbin_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return 1 - AP of a histogram of scores with ``bins`` centers (listwise loss, Eq. 7 to 13)."""
    return _histogram_ap(scores, positive, config.bins, tie_aware=config.ties == "aware")


def blackbox_ap(scores: Tensor, positive: Tensor, config: Any, queries: int) -> Tensor:
    """Return the exact 1 - AP; its gradient is the difference quotient of the ranker.

    Rolinek et al., CVPR 2020. A random margin is drawn from torch's own generator.
    """
    away = torch.where(positive, -0.5, 0.5).to(scores.dtype) * config.margin
    if not config.fixed_margin:
        away = away * torch.randn_like(scores).abs()
    moved = (scores + away).detach()
    rank = _exact_ranks(moved) / len(scores)
    among = _exact_ranks(moved[positive]) / len(scores)
    loss = 1.0 - (among / rank[positive]).mean()
    slope = torch.zeros_like(moved)  # of the mean loss with respect to the ranks
    slope[positive] = among / rank[positive].square() / (len(among) * queries)
    changed = _exact_ranks(moved + config.lambda_val * slope) / len(scores)
    quotient = (changed - rank) / config.lambda_val
    # the second term is 0, and its derivative is the quotient
    return loss + ((scores - scores.detach()) * quotient).sum() * queries


def _exact_ranks(scores: Tensor) -> Tensor:
    """Return the rank of each item from 1; tied items share the worst of their ranks."""
    return (scores >= scores.unsqueeze(1)).sum(1).to(scores.dtype)


def _histogram_ap(scores: Tensor, positive: Tensor, centers: int, tie_aware: bool) -> Tensor:
    """Return 1 - AP of items shared linearly between the two nearest of even centers on [-1, 1]."""
    width = 2.0 / (centers - 1)
    center = torch.linspace(1.0, -1.0, centers, dtype=scores.dtype).unsqueeze(1)
    share = (1.0 - (scores.clamp(-1.0, 1.0) - center).abs() / width).clamp(min=0.0)
    of_all, of_positives = share.sum(1), share[:, positive].sum(1)
    seen, seen_positives = of_all.cumsum(0), of_positives.cumsum(0)
    if tie_aware:  # the precision in the middle of each bin instead of at its end
        seen = 1.0 + 2.0 * seen - of_all
        seen_positives = 1.0 + 2.0 * seen_positives - of_positives
    precision = seen_positives / torch.where(seen > 0, seen, 1.0)
    return 1.0 - (of_positives * precision).sum() / positive.sum()
