"""Losses: one file each, found by their registry; ``create_loss`` makes one by name.

Importing this package does not import torch, so that ``catalogue`` can be used without it.
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
    facts = {each: getattr(declared, each) for each in FACTS}

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
