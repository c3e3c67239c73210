"""Ranking losses that autograd differentiates: a function of scores and targets, query by query."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmark.losses.kernels.relation import Relation


def differentiated(
    function: Callable[[Tensor, Tensor], Tensor],
    scores: Tensor,
    relation: Relation,
    scale: float,
    include_query: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return the loss of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

    ``function`` gets the scores (V, R) of the queries that have a positive, and which entries are
    positives, boolean (V, R). It returns losses (V,). Queries of the batch are positives of
    themselves with ``include_query``; without it their own entries are cut out. Queries without a
    positive have 0.
    """
    queries = torch.cat([group.queries for group in relation.groups])
    targets = relation.targets(include_query)[queries]
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_(gradient)
        rows = leaf[queries]
        if relation.own and not include_query:
            columns = torch.arange(relation.references - 1, device=scores.device)
            others = columns + (columns >= queries.unsqueeze(1) + relation.diagonal)
            rows, targets = rows.gather(1, others), targets.gather(1, others)
        losses = function(rows, targets)
        derivative = torch.autograd.grad(losses.sum() * scale, leaf)[0] if gradient else None
    # comparisons hide NaN; a NaN anywhere in a row must show in its value
    values = scores.sum(1) * 0.0
    values[queries] += losses.detach()
    return values, derivative
