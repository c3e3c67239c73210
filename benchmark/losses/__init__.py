"""Losses: one file each, found by their registry; ``create_loss`` makes one by name.

Importing this package does not import torch, so that ``catalogue`` can be used without it.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from benchmark.core.errors import ConfigError, RunError
from benchmark.core.options import build, make
from benchmark.core.registry import Registry

if TYPE_CHECKING:
    from benchmark.losses.base import Loss


KINDS = ("ranking", "pair", "proxy", "triplets", "none")
# What training and tables need to know of a loss. ``kind``: one of KINDS. ``stochastic``: the value
# depends on the generator. ``accepts_references``: separate reference embeddings (a memory) can be
# ranked instead of the batch itself.
FACTS = {"paper": "", "kind": "ranking", "stochastic": False, "accepts_references": True}
LOSSES = Registry("loss", "benchmark.losses", FACTS)


def plugin_problems() -> list[str]:
    """Return what is wrong with the losses of plugins and their Configs; imports torch."""
    from torch import nn

    own = inspect.signature(create_loss).parameters.values()
    names = {each.name for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD}
    kinds = {LOSSES.words_of(entry.target): entry.facts["kind"] for entry in LOSSES}
    return [
        *LOSSES.plugin_problems(nn.Module, names),
        *(
            f"{words}: kind is '{kind}' (allowed: {', '.join(KINDS)})"
            for words, kind in kinds.items()
            if kind not in KINDS
        ),
    ]


@functools.cache
def _require_sound_plugins() -> None:
    """Raise ConfigError for a plugin that has changed since the study was checked."""
    if problems := plugin_problems():
        raise ConfigError("loss registry", problems)


def create_loss(
    name: str,
    *,
    embedding_dim: int | None = None,
    num_classes: int | None = None,
    seed: int = 0,
    check: bool = True,
    **hyperparameters: Any,
) -> Loss:
    """Return the loss registered as ``name``.

    ``embedding_dim``, ``num_classes`` and ``seed`` shape and initialise the proxies of proxy
    losses; the others ignore them. Raises ConfigError for an unknown name, or naming every wrong
    hyperparameter; without ``check`` they are taken as right.
    """
    from benchmark.losses.kernels.checks import check_trainable

    entry = LOSSES[name]
    if check:
        _require_sound_plugins()
    target = entry.target.Config
    config = (
        build(target, hyperparameters, f"loss '{name}'") if check else make(target, hyperparameters)
    )
    sizes = {"embedding_dim": embedding_dim, "num_classes": num_classes, "seed": seed}
    try:
        loss = entry.target(config, **sizes)
        if not hasattr(loss, "_modules"):  # what torch makes of every module first
            raise RunError("__init__ must call super().__init__(config, **sizes) before all else")
        check_trainable(loss)
    except Exception as error:
        LOSSES.raise_named(error, entry.target)
    return loss
