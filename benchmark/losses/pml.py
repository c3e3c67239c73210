"""Losses of pytorch-metric-learning: by the name of their class, and under names of their own.

The latter are data: ``pml_named.yaml`` gives class, miner, options and their source for each name.
A part of the library is named by its class: ``{class: LpDistance, params: {power: 2}}``. Parts of
parts are given in the same way, for example a distance among the ``params`` of a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from benchmark.core.errors import ConfigError, RunError
from benchmark.losses import implements
from benchmark.losses.base import ComparingLoss, widened
from benchmark.losses.configs import NAMED
from benchmark.losses.kernels.relation import Positives
from benchmark.losses.library import CLASSES, PARTS, part_problems

CPU = torch.device("cpu")
# Whole numbers below this seed the library, which draws from torch's own generators.
SEEDS = 2**31 - 1

Part = Mapping[str, Any]  # {class, params}, of a loss or a miner of the library


def class_of(module: str, name: str) -> Any:
    """Return a class of a module of the library."""
    return getattr(import_module(f"pytorch_metric_learning.{module}"), name)


def construct(module: str, part: Part, **supplied: Any) -> Any:
    """Return the object of ``{class, params}``; ``supplied`` are further arguments."""
    params = {
        name: construct(PARTS[name], value) if name in PARTS else value
        for name, value in part.get("params", {}).items()
    }
    return class_of(module, part["class"])(**params, **supplied)


class LibraryLoss(ComparingLoss):
    """A loss of pytorch-metric-learning; subclasses define ``parts``.

    The library is imported when such a loss is created, because importing it takes seconds. Like
    the suite's own losses it computes in float32 at least. Proxies are drawn from ``seed`` alone;
    they are parameters, so that optimiser and checkpoint see them.
    """

    # Whether without a positive the formula is 0 with no gradient. Such a batch is an error then,
    # as it is to a ranking loss.
    needs_positives = False
    # Whether the miner or the loss draws random numbers.
    draws = False

    def __init__(self, config, *, embedding_dim=None, num_classes=None, seed=0):
        super().__init__(config)
        loss, miner = self.parts()
        self.name = loss["class"]
        known = CLASSES["losses"][self.name]
        self.takes_references = known["references"]
        supplied: dict[str, Any] = dict.fromkeys(known["supplied"], embedding_dim)
        if "num_classes" in supplied:
            supplied["num_classes"] = num_classes
        self.num_classes = supplied.get("num_classes")
        if self.name == "HistogramLoss" and "distance" not in loss.get("params", {}):
            supplied["distance"] = inside_cosine()
        # the library draws from torch's global generator; it is put back as it was
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner = construct("losses", loss, **supplied)
            self.miner = miner and construct("miners", miner)
        for part in self.modules():
            if type(part) is class_of("distances", "LpDistance"):
                part.__class__ = direct_distance()

    def parts(self) -> tuple[Part, Part | None]:
        """Return the loss, and its miner if it has one, from ``self.config``."""
        raise NotImplementedError

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        if others is not None and not self.takes_references:
            raise RunError(f"{self.name} takes no references: train it without a memory")
        if self.draws and own and others is not None and not len(others):
            others = other_labels = None  # the library draws other pairs from separate references
        if self.needs_positives:
            Positives.from_labels(labels, other_labels, CPU, own=own).require_positives()
        device = embeddings.device
        devices = [device] if device.type == "cuda" and self.draws else []
        with torch.random.fork_rng(devices):
            if self.draws:
                source = CPU if generator is None else generator.device
                drawn = torch.randint(SEEDS, (), generator=generator, device=source)
                torch.manual_seed(int(drawn))
            queries = widened(embeddings)
            self.inner.to(queries.dtype)
            labels = labels.to(device, non_blocking=True)
            # miners and hinges pass over NaN in silence; 0 x NaN brings it back
            if others is None:
                # without references the library itself leaves out pairs of an image with itself
                mined = self.miner(queries, labels) if self.miner else None
                return self.inner(queries, labels, mined) + 0.0 * queries.sum()
            pool = widened(others)
            pool_labels = other_labels.to(device, non_blocking=True)
            if own:
                pool = torch.cat([queries, pool.to(queries.dtype)])
                pool_labels = torch.cat([labels, pool_labels])
            mined = self.miner(queries, labels, pool, pool_labels) if self.miner else None
            if own:
                mined = _without_own(mined, labels, pool_labels)
            value = self.inner(queries, labels, mined, pool, pool_labels)
            return value + 0.0 * (queries.sum() + pool.sum())


@implements("pml")
class LibraryClass(LibraryLoss):
    """Any loss of the library by its class, with a miner or without one::

    losses:
      circle_hard: {loss: pml, class: CircleLoss, params: {m: 0.25}, miner: {class: BatchHardMiner}}
    """

    draws = True

    def __init__(self, config, **sizes):
        part = {"class": config.class_, "params": config.params, "miner": config.miner}
        if found := part_problems("losses", part, ""):
            raise ConfigError("loss 'pml'", found)
        super().__init__(config, **sizes)

    def parts(self):
        return {"class": self.config.class_, "params": self.config.params}, self.config.miner


def named_loss(entry: Mapping[str, Any]) -> type[LibraryLoss]:
    """Return the class of an entry of ``pml_named.yaml``; its hyperparameters are its options."""

    class NamedLoss(LibraryLoss):
        __doc__ = entry["source"]
        needs_positives = entry.get("needs_positives", False)
        draws = entry.get("stochastic", False)

        def parts(self):
            def part(module: str, given: Part) -> Part:
                taken = CLASSES[module][given["class"]]["parameters"]  # classes may share some
                options = {key: value for key, value in vars(self.config).items() if key in taken}
                return {"class": given["class"], "params": given.get("params", {}) | options}

            miner = part("miners", entry["miner"]) if "miner" in entry else None
            return part("losses", entry), miner

    return NamedLoss


for _name, _entry in NAMED.items():
    implements(_name)(named_loss(_entry))


@cache
def direct_distance() -> type:
    """Return the library's distance, computed on a CPU without products of matrices.

    These end in torch's square root, which no setting makes the same on all processors.
    """
    from pytorch_metric_learning.distances import LpDistance

    class DirectDistance(LpDistance):
        def compute_mat(self, query_emb, ref_emb):
            if query_emb.is_cuda:
                return super().compute_mat(query_emb, ref_emb)
            others = query_emb if ref_emb is None else ref_emb
            return torch.cdist(query_emb, others, self.p, "donot_use_mm_for_euclid_dist")

    return DirectDistance


def inside_cosine() -> Any:
    """Return a cosine similarity below 1: the library's histogram has no bin for 1 and for NaN."""
    from pytorch_metric_learning.distances import CosineSimilarity

    class InsideCosine(CosineSimilarity):
        def forward(self, *arguments, **options):
            return super().forward(*arguments, **options).clamp(-1.0, 1.0 - 1e-6).nan_to_num()

    return InsideCosine()


def _without_own(
    mined: tuple[Tensor, ...] | None, labels: Tensor, pool_labels: Tensor
) -> tuple[Tensor, ...]:
    """Return pairs or triplets, all pairs by default, without those of an image with itself."""
    if mined is None:
        same = labels.unsqueeze(1) == pool_labels
        mined = *same.nonzero(as_tuple=True), *same.logical_not().nonzero(as_tuple=True)
    anchors, positives, *rest = mined
    keep = anchors != positives  # positives lie at the index of the anchor
    if len(rest) == 1:
        rest = [rest[0][keep]]
    return anchors[keep], positives[keep], *rest
