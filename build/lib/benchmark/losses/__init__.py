"""Losses: one file each, found by their registry; ``create_loss`` makes one by name.

Importing this package does not import torch, so that ``catalogue`` can be used without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmark.core.options import build
from benchmark.core.registry import Registry

if TYPE_CHECKING:
    from benchmark.losses.base import Loss


# What training and tables need to know of a loss. ``kind``: ranking, pair, proxy, triplets or none.
# ``stochastic``: the value depends on the generator. ``accepts_references``: separate reference
# embeddings (a memory) can be ranked instead of the batch itself.
FACTS = {"paper": "", "kind": "ranking", "stochastic": False, "accepts_references": True}
LOSSES = Registry("loss", "benchmark.losses", FACTS)


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
