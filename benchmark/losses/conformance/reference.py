"""The reference of a loss: its formula over a batch, in float64, with value and gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.losses import create_loss
from benchmark.losses.conformance import formulas
from benchmark.losses.conformance.candidate import Answer
from benchmark.losses.conformance.cases import Case

# Scores (Q, R), which references are positives (Q, R), which are ranked at all (Q, R) -> value.
OfScores = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Reference:
    """A registered loss with its options, written as a dense formula."""

    name: str
    options: Mapping[str, Any]
    config: Any
    of_scores: OfScores

    @property
    def random(self) -> bool:
        """Whether the value depends on random numbers."""
        return bool(getattr(self.config, "margin", 0.0)) and not self.config.fixed_margin

    @property
    def perturbs(self) -> bool:
        """Whether the gradient is a difference quotient, which a factor on the loss may change."""
        return hasattr(self.config, "lambda_val")

    def answer(
        self, case: Case, noise: float = 0.0, seed: int = 0, *, gradient: bool = True
    ) -> Answer:
        """Return the value of a batch with scores disturbed by ``noise`` x normal, and its gradient
        where that is asked for. The value is NaN when no query has a positive."""
        generator = torch.Generator().manual_seed(seed)
        free = case.embeddings.clone().requires_grad_(gradient)
        queries = normalize(free, dim=1)
        pool, pool_labels = queries, case.labels
        if case.references is not None and case.reference_labels is not None:
            pool, pool_labels = normalize(case.references, dim=1), case.reference_labels
        scores = queries @ pool.T
        scores = scores + noise * torch.randn(scores.shape, generator=generator).double()
        positives = case.labels.unsqueeze(1) == pool_labels
        ranked = torch.ones_like(positives)
        if case.references is None:
            ranked.fill_diagonal_(False)
        value = self.of_scores(scores, positives, ranked)
        if not gradient or not value.isfinite():
            return Answer(float(value), None)
        (found,) = torch.autograd.grad(value + 0.0 * free.sum(), free)
        return Answer(value.item(), found)


def reference(name: str, options: Mapping[str, Any]) -> Reference:
    """Return the reference of the loss registered as ``name``, with its hyperparameters.

    Raises ConfigError for a name without a formula, or naming every wrong hyperparameter.
    """
    if name not in reference_names():
        raise ConfigError("--as", [unknown_name("reference", name, reference_names())])
    config = create_loss(name, **options).config  # it may refuse more than its Config says
    if getattr(config, "simix", False):
        raise ConfigError("--option", ["simix  makes images of its own (allowed here: false)"])
    of_scores = _roadmap(config) if name == "roadmap" else _mean(_per_query()[name], config)
    return Reference(name, options, config, of_scores)


def reference_names() -> list[str]:
    """Return the losses that have a reference, in alphabetical order."""
    return sorted([*_per_query(), "roadmap"])


def _per_query() -> dict[str, Callable]:
    """Return the public functions of ``formulas`` by the name of their loss."""
    found = inspect.getmembers(formulas, inspect.isfunction)
    return {name: function for name, function in found if not name.startswith("_")}


def _mean(formula: Callable, config: Any) -> OfScores:
    """Return the mean of a formula over the queries that have a positive besides themselves."""
    own_counts = getattr(config, "include_query", False)
    ranked_only = formula is formulas.recall_at_k  # its query is ranked and no positive
    by_class = getattr(config, "query_weights", "uniform") == "class"

    def of_scores(scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
        queries = (positives & ranked).any(1).nonzero().flatten().tolist()
        if not queries:
            return scores.sum() * torch.nan
        losses = []
        for query in queries:
            items = torch.ones_like(ranked[query]) if own_counts else ranked[query]
            positive = positives[query] & ranked[query] if ranked_only else positives[query]
            losses.append(formula(scores[query, items], positive[items], config, len(queries)))
        values = torch.stack(losses)
        if not by_class:
            return values.mean()
        # queries of one class have the same row of positives
        _, group = torch.unique(positives[queries], dim=0, return_inverse=True)
        means = [values[group == number].mean() for number in range(int(group.max()) + 1)]
        return torch.stack(means).mean()

    return of_scores


def _roadmap(config: Any) -> OfScores:
    """Return (1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    The calibration (Eq. 7) is a mean by query, or over pairs that are not 0.
    """
    weights = config.weights or [1.0 - config.lambda_, config.lambda_]
    sup_ap = _mean(formulas.sup_ap, config)

    def calibration(scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
        near, far = positives & ranked, ~positives
        lack = (config.alpha - scores).clamp(min=0.0) * near
        excess = (scores - config.beta).clamp(min=0.0) * far
        valid = near.any(1)
        if not valid.any():
            return scores.sum() * torch.nan
        if config.reduction == "nonzero":
            means = [part.sum() / max(1, int((part > 0).sum())) for part in (lack, excess)]
            return means[0] + means[1]
        per_query = lack.sum(1) / near.sum(1).clamp(min=1)
        per_query = per_query + excess.sum(1) / far.sum(1).clamp(min=1)
        return per_query[valid].mean()

    def of_scores(*scored: Tensor) -> Tensor:
        return weights[0] * sup_ap(*scored) + weights[1] * calibration(*scored)

    return of_scores
