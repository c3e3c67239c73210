"""Losses of pytorch-metric-learning, by the name of their class, behind the suite's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmark.core.errors import RunError
from benchmark.core.options import option
from benchmark.core.plugin_errors import in_words
from benchmark.losses import LOSSES
from benchmark.losses.base import ComparingLoss, widened
from benchmark.losses.kernels.checks import check_classes, check_sizes
from benchmark.losses.kernels.relation import Positives

CPU = torch.device("cpu")
# Whole numbers below this seed the library, which draws from torch's own generators.
SEEDS = 2**31 - 1

Part = Mapping[str, Any]  # {class, params}, of a loss or a miner of the library

# What the library raises for parameters that do not fit each other or the batch.
UNUSABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class LibraryLoss(ComparingLoss):
    """A loss of pytorch-metric-learning; subclasses define ``parts``.

    The library is imported when such a loss is created, because importing it takes seconds. Like
    the suite's own losses it computes in float32 at least, whatever autocast says. Proxies are
    drawn from ``seed`` alone; they are parameters, so that optimiser and checkpoint see them.
    """

    # Whether without a positive the formula is 0 with no gradient. Such a batch is an error then,
    # as it is to a ranking loss.
    needs_positives = False

    # Whether the miner or the loss draws random numbers.
    draws = False

    def __init__(self, config, *, embedding_dim=None, num_classes=None, seed=0):
        from benchmark.losses import pml_signatures as library

        super().__init__(config)
        loss, miner = self.parts()
        self.name = loss["class"]
        target = library.classes("losses")[self.name]
        self.takes_references = library.takes_references(target)
        needed = library.supplied_to(target)
        self.num_classes = num_classes if "num_classes" in needed else None
        sizes = {"num_classes": num_classes}
        sizes |= dict.fromkeys(("embedding_size", "descriptors_dim"), embedding_dim)
        if needed:
            check_sizes(self.name, embedding_dim, num_classes)
        supplied = {name: sizes[name] for name in needed}
        if self.name == "HistogramLoss" and "distance" not in loss.get("params", {}):
            supplied["distance"] = inside_cosine()
        # the library draws from torch's global generator; it is put back as it was
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner = library.construct("losses", loss, **supplied)
            self.miner = miner and library.construct("miners", miner)

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
        if self.num_classes is not None:
            check_classes(labels, self.num_classes)
        device = embeddings.device
        devices = [device] if device.type == "cuda" and self.draws else []
        with torch.autocast(device.type, enabled=False), torch.random.fork_rng(devices):
            if self.draws:
                source = CPU if generator is None else generator.device
                drawn = torch.randint(SEEDS, (), generator=generator, device=source)
                torch.manual_seed(int(drawn))
            try:
                return self._value(embeddings, labels, others, other_labels, own)
            except UNUSABLE as error:
                if type(error) is not RuntimeError and isinstance(error, RuntimeError):
                    raise  # a full memory, a failing device
                words = f"pytorch-metric-learning cannot use these parameters ({in_words(error)})"
                raise RunError(f"loss '{self.name}': {words}") from error

    def _value(self, embeddings, labels, others, other_labels, own):
        queries, device = widened(embeddings), embeddings.device
        self.inner.to(queries.dtype)
        labels = labels.to(device, non_blocking=True)
        if others is None:
            # without references the library itself leaves out pairs of an image with itself
            mined = self.miner(queries, labels) if self.miner else None
            return self.inner(queries, labels, mined) + 0.0 * queries.sum()
        pool, pool_labels = widened(others), other_labels.to(device, non_blocking=True)
        if own:
            pool = torch.cat([queries, pool.to(queries.dtype)])
            pool_labels = torch.cat([labels, pool_labels])
        mined = self.miner(queries, labels, pool, pool_labels) if self.miner else None
        if own:
            mined = _without_own(_all_pairs(labels, pool_labels) if mined is None else mined)
        value = self.inner(queries, labels, mined, pool, pool_labels)
        # miners and hinges pass over NaN in silence; 0 x NaN brings it back
        return value + 0.0 * (queries.sum() + pool.sum())


@LOSSES.register(
    "pml",
    display="pytorch-metric-learning",
    paper="Musgrave et al., arXiv 2020",
    kind="pair",
)
class LibraryClass(LibraryLoss):
    """Any loss of the library by its class, with a miner or without one::

    losses:
      circle_hard: {loss: pml, class: CircleLoss, params: {m: 0.25}, miner: {class: BatchHardMiner}}
    """

    draws = True

    @dataclass(frozen=True, kw_only=True)
    class Config:
        params: dict[str, Any] = option({}, help="parameters of the class")
        miner: dict[str, Any] | None = option(
            None, help="{class, params} of a miner of the library"
        )
        class_: str = option("MultiSimilarityLoss", help="a loss of the library")

        @classmethod
        def json_schema(cls) -> dict[str, Any]:
            """Return the schema that knows every class and its parameters; imports the library."""
            from benchmark.losses import pml_signatures as library

            properties, rules = library.part_properties("losses", "a loss of the library")
            properties["class"]["default"] = "MultiSimilarityLoss"
            miner = library.part_schema("miners", "a miner of the library")
            miner |= {"type": ["object", "null"], "default": None}
            properties["miner"] = miner | {"description": "{class, params} of a miner"}
            losses = library.classes("losses").items()
            without = [name for name, each in losses if not library.takes_references(each)]
            return {
                "type": "object",
                "properties": properties,
                "additionalProperties": False,
                "allOf": rules,
                "without_references": without,
            }

        @classmethod
        def from_options(cls, values: Mapping[str, Any]) -> LibraryClass.Config:
            """Return the Config of options under the names of YAML, where ``class`` is one."""
            return cls(**{"class_" if key == "class" else key: values[key] for key in values})

    def parts(self):
        return {"class": self.config.class_, "params": self.config.params}, self.config.miner


def inside_cosine() -> Any:
    """Return a cosine similarity below 1: the library's histogram has no bin for 1 and for NaN."""
    from pytorch_metric_learning.distances import CosineSimilarity

    class InsideCosine(CosineSimilarity):
        def forward(self, *arguments, **options):
            return super().forward(*arguments, **options).clamp(-1.0, 1.0 - 1e-6).nan_to_num()

    return InsideCosine()


def _all_pairs(labels: Tensor, pool_labels: Tensor) -> tuple[Tensor, ...]:
    """Return the pairs of a query and a positive, then those of a query and a negative."""
    same = labels.unsqueeze(1) == pool_labels
    return *same.nonzero(as_tuple=True), *same.logical_not().nonzero(as_tuple=True)


def _without_own(mined: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return pairs or triplets without those whose positive is the anchor, at the same index."""
    anchors, positives, *rest = mined
    keep = anchors != positives
    if len(rest) == 1:
        return anchors[keep], positives[keep], rest[0][keep]
    return anchors[keep], positives[keep], *rest
