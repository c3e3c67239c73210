"""The losses written straight from their formulas: one query, one positive, one item at a time.

Losses of ranks take ``levels`` (0: not relevant) of all references of a query, and ``query``, its
index among them, None where it is not one of them.
"""

from __future__ import annotations

import math

import torch

# Their ranks are soft among positives too, or the worst of a tie: a perfect ranking costs a little.
SOFT_AMONG_POSITIVES = (
    "approx_ndcg",
    "recall_at_k",
    "smooth_ndcg",
    "smooth_recall",
    "sup_ndcg",
    "sup_recall",
)


def sigmoid(t):
    return 1 / (1 + torch.exp(-t))


def smooth_ap(scores, targets, tau=0.01):
    total = 0
    positives = targets.nonzero().flatten().tolist()
    for k in positives:
        steps = [sigmoid((scores[j] - scores[k]) / tau) for j in range(len(scores)) if j != k]
        wanted = [bool(targets[j]) for j in range(len(scores)) if j != k]
        rank = 1 + sum(steps)
        total = total + (1 + sum(s for s, w in zip(steps, wanted, strict=True) if w)) / rank
    return 1 - total / len(positives)


def sup_ap(scores, targets, tau=0.01, rho=100.0, delta=0.05, offset=None, start=0.5):
    if offset is None:
        offset = 1 / (1 + math.exp(-delta / tau)) + start

    def above(t):
        if t > delta:
            return rho * (t - delta) + offset
        return sigmoid(t / tau) + (start if t >= 0 else 0)

    total = 0
    positives = targets.nonzero().flatten().tolist()
    for k in positives:
        within = 1 + sum(float(scores[j] >= scores[k]) for j in positives if j != k)
        beyond = sum(above(scores[j] - scores[k]) for j in range(len(scores)) if not targets[j])
        total = total + within / (within + beyond)
    return 1 - total / len(positives)


def soft_binned_ap(scores, targets, centers, lowest=-1.0):
    width = (1 - lowest) / (centers - 1)
    seen = seen_positive = precision = 0
    for m in range(centers):
        center = 1 - m * width
        share = (1 - (scores.clamp(lowest, 1) - center).abs() / width).clamp(min=0)
        positive = (share * targets).sum()
        seen, seen_positive = seen + share.sum(), seen_positive + positive
        if seen > 0:
            precision = precision + seen_positive / seen * positive
    return 1 - precision / targets.sum()


def exact_ap(scores, targets, margin=0.0):
    """1 - AP with every tied item at the worst rank of its tie, after moving both kinds by half the
    margin."""
    scores = torch.where(targets, scores - margin / 2, scores + margin / 2)
    positives = targets.nonzero().flatten().tolist()
    total = 0.0
    for k in positives:
        ahead = scores >= scores[k]
        total += (ahead & targets).sum().item() / ahead.sum().item()
    return torch.tensor(1 - total / len(positives), dtype=scores.dtype)


def blackbox_gradient(scores, targets, queries, lambda_val=4.0):
    """Difference quotient of the normalised ranker, from its definition; scores without ties."""

    def ranks(values):
        order = values.argsort(descending=True)
        result = torch.empty_like(values)
        result[order] = torch.arange(1, len(values) + 1, dtype=values.dtype)
        return result / len(values)

    rank = ranks(scores)
    upstream = torch.zeros_like(scores)
    for k in targets.nonzero().flatten().tolist():
        within = (scores[targets] >= scores[k]).sum() / len(scores)
        upstream[k] = within / rank[k] ** 2 / targets.sum() / queries
    return (ranks(scores + lambda_val * upstream) - rank) / lambda_val


def calibration(embeddings, labels, alpha=0.9, beta=0.6, reduction="pairs"):
    scores = embeddings @ embeddings.T
    per_query, near, far = [], [], []
    for i in range(len(labels)):
        positive = [
            alpha - scores[i, j] for j in range(len(labels)) if j != i and labels[j] == labels[i]
        ]
        negative = [scores[i, j] - beta for j in range(len(labels)) if labels[j] != labels[i]]
        positive, negative = [p.clamp(min=0) for p in positive], [n.clamp(min=0) for n in negative]
        near, far = near + positive, far + negative
        if positive:
            per_query.append(
                sum(positive) / len(positive) + (sum(negative) / len(negative) if negative else 0)
            )
    if reduction == "pairs":
        return sum(per_query) / len(per_query)
    return sum(sum(part) / max(1, sum(bool(p > 0) for p in part)) for part in (near, far))


def smooth_rank(scores, levels, p, tau=0.01):
    return 1 + sum(sigmoid((scores[j] - scores[p]) / tau) for j in range(len(scores)) if j != p)


def sup_rank(scores, levels, p, tau=0.01, rho=100.0, delta=0.05, offset=None, start=0.5):
    if offset is None:
        offset = 1 / (1 + math.exp(-delta / tau)) + start
    rank = 1
    for j in range(len(scores)):
        t = scores[j] - scores[p]
        if j == p:
            continue
        if levels[j] >= levels[p]:
            rank = rank + float(t >= 0)
        elif t > delta:
            rank = rank + rho * (t - delta) + offset
        else:
            rank = rank + sigmoid(t / tau) + (start if t >= 0 else 0)
    return rank


def recall(scores, levels, query, rank, ks, temperatures):
    positives = [p for p in range(len(scores)) if levels[p]]
    ranks = [rank(scores, levels, p) for p in positives]
    values = [
        sum(sigmoid((k - r) / t) for r in ranks) / min(k, len(positives))
        for k, t in zip(ks, temperatures, strict=True)
    ]
    return 1 - sum(values) / len(values)


def recall_at_k(scores, levels, query, ks, temperatures, tau=0.01):
    positives = [p for p in range(len(scores)) if levels[p] and p != query]
    ranks = [smooth_rank(scores, levels, p, tau) for p in positives]
    values = []
    for k, t in zip(ks, temperatures, strict=True):
        hits = sum(sigmoid((k - r) / t) for r in ranks)
        values.append((hits if hits < k else k) / min(k, len(positives)))
    return 1 - sum(values) / len(values)


def ndcg(scores, levels, query, rank):
    gains = [2.0 ** int(level) - 1 for level in levels]
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(gains, reverse=True)))
    found = 0
    for p, gain in enumerate(gains):
        if gain:
            found = found + gain * math.log(2) / torch.log(1 + rank(scores, levels, p))
    return 1 - found / ideal


def pnp(scores, levels, query, penalty, tau=0.01):
    positives = [p for p in range(len(scores)) if levels[p]]
    negatives = [j for j in range(len(scores)) if not levels[j]]
    total = 0
    for p in positives:
        total = total + penalty(sum(sigmoid((scores[j] - scores[p]) / tau) for j in negatives))
    return total / len(positives)
