"""Losses: one file each, found by their registry; ``create_loss`` makes one by name.

Importing this package does not import torch, so that ``catalogue`` can be used without it.

From a loss to its kernel, with ``SmoothAP`` as the example::

    rank_losses.SmoothAP                   the formula: a step function, a measure, tau
      base.ScoreLoss.compare               embeddings and labels of a batch
        kernels.fused.OfEmbeddings         the autograd function: tiles of whole rows of scores
          base.RankingLoss.on_scores       a tile: the mean over its queries
            base.SoftRankLoss.rank         the loss of each query, and its derivative
              kernels.ranking.SoftRanks    scores / tau; the ranks of all positives
                kernels.relation.block_losses   queries with equally many positives are one block
                  kernels.ranking.AveragePrecision   from ranks to 1 - AP
                  kernels.steps.Pairs      ranks pair by pair; Panels: many positives on a CPU
                    kernels.steps.Sigmoid.count   how far items count as ranked above an anchor

``conformance.formulas`` has the same losses as plain formulas, one query at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from benchmark.core.options import build
from benchmark.core.registry import Registry
from benchmark.losses.configs import DECLARED, FACTS

if TYPE_CHECKING:
    from benchmark.losses.base import Loss


LOSSES = Registry("loss", "benchmark.losses", FACTS)

L = TypeVar("L", bound="type[Loss]")


def implements(name: str) -> Callable[[L], L]:
    """Return a decorator that files a loss of the suite under what ``configs`` declares of it."""
    declared = DECLARED[name]
    facts = {fact: getattr(declared, fact) for fact in FACTS}

    def decorate(target: L) -> L:
        target.Config = declared.config
        return LOSSES.register(name, display=declared.display, **facts)(target)

    return decorate


def create_loss(
    name: str,
    *,
    embedding_dim: int | None = None,
    num_classes: int | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> Loss:
    """Return the loss registered as ``name``.

    ``embedding_dim``, ``num_classes`` and ``seed`` shape and initialise the proxies of proxy
    losses; the others ignore them. Raises ConfigError for an unknown name, or naming every wrong
    hyperparameter.
    """
    target = LOSSES[name].target
    config = build(target.Config, hyperparameters, f"loss '{name}'")
    return target(config, embedding_dim=embedding_dim, num_classes=num_classes, seed=seed)
