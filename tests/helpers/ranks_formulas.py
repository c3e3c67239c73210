"""Losses of ranks written straight from their formulas: one query, one item and one pair at a time.

``scores`` and ``levels`` (0: not relevant) are those of all references of a query; ``query`` is the
index of the query among them, None where it is not one of them.
"""

from __future__ import annotations

import math

import torch


def sigmoid(t):
    return 1 / (1 + torch.exp(-t))


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
