"""Losses that come from pytorch-metric-learning, behind the suite's interface."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmark.core.errors import RunError
from benchmark.losses.base import ComparingLoss, widened
from benchmark.losses.kernels.relation import Positives

CPU = torch.device("cpu")


class LibraryLoss(ComparingLoss):
    """A pair loss of pytorch-metric-learning; subclasses define ``make``.

    The library is imported when such a loss is created, because importing it takes seconds. Like
    the suite's own losses it computes in float32 at least, whatever autocast says.

    ``needs_positives``: without a positive the formula is 0 with no gradient. Such a batch is an
    error, as it is to a ranking loss.
    """

    needs_positives = False

    def __init__(self, config: Any, **sizes: Any):
        super().__init__(config, **sizes)
        self.inner = self.make()

    def make(self) -> nn.Module:
        """Return the library's loss, made from ``self.config``."""
        raise NotImplementedError

    def mine(
        self,
        embeddings: Tensor,
        labels: Tensor,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
    ) -> Any:
        """Return the index tuples that a miner chose; None lets the loss use all pairs."""
        return None

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        if self.needs_positives:
            Positives.from_labels(labels, other_labels, CPU, own=own).require_positives()
        device = embeddings.device
        with torch.autocast(device.type, enabled=False):
            queries, labels = widened(embeddings), labels.to(device, non_blocking=True)
            if others is None:
                # without references the library itself leaves out pairs of an image with itself
                value = self.inner(queries, labels, self.mine(queries, labels))
                return value + 0.0 * queries.sum()
            pool, pool_labels = widened(others), other_labels.to(device, non_blocking=True)
            if own:
                pool = torch.cat([queries, pool.to(queries.dtype)])
                pool_labels = torch.cat([labels, pool_labels])
            mined = self.mine(queries, labels, pool, pool_labels)
            if own:
                mined = _without_own(_all_pairs(labels, pool_labels) if mined is None else mined)
            value = self.inner(queries, labels, mined, pool, pool_labels)
            # miners and hinges pass over NaN in silence; 0 x NaN brings it back
            return value + 0.0 * (queries.sum() + pool.sum())


class ProxyLoss(ComparingLoss):
    """A loss of pytorch-metric-learning with one trainable proxy a class; labels are 0, 1, ...

    Proxies are drawn from ``seed`` alone. They are parameters, so optimiser and checkpoint see
    them.
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
        """Return the library's loss with its proxies initialised."""
        raise NotImplementedError

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        name, last = type(self).__name__, self.num_classes - 1
        if others is not None:
            raise RunError(f"{name} compares with its proxies and takes no references")
        if not labels.is_cuda and len(labels) and not 0 <= labels.min() <= labels.max() <= last:
            raise RunError(
                f"labels run from {labels.min()} to {labels.max()}; the loss has proxies for 0 to "
                f"{last}: renumber the classes or set num_classes"
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = widened(embeddings)
            self.inner.to(queries.dtype)
            return self.inner(queries, labels.to(queries.device, non_blocking=True))


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
