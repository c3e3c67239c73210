"""Losses that come from pytorch-metric-learning, behind the suite's interface."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmark.core.errors import RunError
from benchmark.losses.base import Loss, check_inputs
from benchmark.losses.kernels.relation import Relation

CPU = torch.device("cpu")


class LibraryLoss(Loss):
    """A pair loss of pytorch-metric-learning; subclasses define ``make``.

    The library is imported when such a loss is created, because importing it takes seconds. Like the
    suite's own losses it computes in float32 at least, whatever autocast says.

    ``needs_positives``: the formula is made of positives, so that without one it is 0 with no gradient;
    such a batch is an error, as it is to a ranking loss.
    """

    needs_positives = False
    labels_on_cpu = True  # so that looking for positives waits for nothing

    def __init__(self, config: Any, **sizes: Any):
        super().__init__(config, **sizes)
        self.inner = self.make()

    def make(self) -> nn.Module:
        """Returns the library's loss, made from ``self.config``."""
        raise NotImplementedError

    def mine(
        self, embeddings: Tensor, labels: Tensor, references: Tensor, reference_labels: Tensor
    ) -> Any:
        """Returns the index tuples that a miner chose; None lets the loss use all pairs."""
        return None

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        check_inputs(embeddings, labels, reference_embeddings, reference_labels)
        own = reference_embeddings is None
        if self.needs_positives:
            Relation.from_labels(labels, reference_labels, CPU).require_positives()
        with torch.autocast(embeddings.device.type, enabled=False):
            queries, labels = _full(embeddings), labels.to(embeddings.device, non_blocking=True)
            pool = queries if own else _full(reference_embeddings)
            pool_labels = (
                labels if own else reference_labels.to(embeddings.device, non_blocking=True)
            )
            # the library compares identity to leave out self pairs, so an own batch is passed as None
            mined = self.mine(queries, labels, None if own else pool, None if own else pool_labels)
            references = () if own else (pool, pool_labels)
            value = self.inner(queries, labels, mined, *references)
            # miners and hinges pass over NaN in silence; 0 x NaN brings it back
            return value + 0.0 * (queries.sum() + pool.sum())

    def with_memory(self, embeddings, labels, memory, memory_labels, *, generator=None):
        check_inputs(embeddings, labels, memory, memory_labels)
        if self.needs_positives:
            Relation.with_memory(labels, memory_labels, CPU).require_positives()
        with torch.autocast(embeddings.device.type, enabled=False):
            queries, labels = _full(embeddings), labels.to(embeddings.device, non_blocking=True)
            pool = torch.cat([queries, memory.to(queries.dtype)])
            pool_labels = torch.cat([labels, memory_labels.to(labels.device, non_blocking=True)])
            mined = self.mine(queries, labels, pool, pool_labels)
            if mined is None:
                mined = _all_pairs(labels, pool_labels)
            value = self.inner(queries, labels, _without_own(mined), pool, pool_labels)
            return value + 0.0 * pool.sum()


class ProxyLoss(Loss):
    """A pytorch-metric-learning loss with one trainable proxy a class; labels must be 0 .. num_classes - 1.

    Proxies are drawn from ``seed`` alone; they are parameters, so optimiser and checkpoint see them.
    """

    def __init__(self, config, *, embedding_dim=None, num_classes=None, seed=0):
        super().__init__(config)
        if not embedding_dim or not num_classes:
            raise RunError(
                f"{type(self).__name__} has a proxy per class: pass embedding_dim and num_classes "
                f"(got {embedding_dim} and {num_classes})"
            )
        self.num_classes = num_classes
        # the library draws from torch's global generator; it is put back as it was
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner = self.make(num_classes, embedding_dim)

    def make(self, num_classes: int, embedding_dim: int) -> nn.Module:
        """Returns the library's loss with its proxies initialised."""
        raise NotImplementedError

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        check_inputs(embeddings, labels, reference_embeddings, reference_labels)
        if reference_embeddings is not None:
            raise RunError(
                f"{type(self).__name__} compares with its proxies and takes no references"
            )
        if (
            not labels.is_cuda
            and len(labels)
            and not 0 <= labels.min() <= labels.max() < self.num_classes
        ):
            raise RunError(
                f"labels run from {labels.min()} to {labels.max()}; the loss has proxies for "
                f"0 to {self.num_classes - 1}: renumber the classes or set num_classes"
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = _full(embeddings)
            self.inner.to(queries.dtype)
            return self.inner(queries, labels.to(queries.device))


def _all_pairs(labels: Tensor, pool_labels: Tensor) -> tuple[Tensor, ...]:
    """Returns anchors and positives, anchors and negatives: every pair of a query and a reference."""
    same = labels.unsqueeze(1) == pool_labels
    return *same.nonzero(as_tuple=True), *same.logical_not().nonzero(as_tuple=True)


def _without_own(mined: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Returns pairs or triplets without those whose positive is the anchor itself, at the same index."""
    anchors, positives, *rest = mined
    keep = anchors != positives
    if len(rest) == 1:
        return anchors[keep], positives[keep], rest[0][keep]
    return anchors[keep], positives[keep], *rest


def _full(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()
