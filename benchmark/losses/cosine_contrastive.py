"""Contrastive loss on cosines, as the cross-batch memory was trained with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import ComparingLoss, widened

SAME = 1e-5  # positives this close to a cosine of 1 cost nothing: the query itself, or a copy of it


@LOSSES.register(
    "cosine_contrastive",
    display="Contrastive (cosine)",
    paper="Wang et al., CVPR 2020",
    kind="pair",
)
class CosineContrastive(ComparingLoss):
    """The sum over a query's pairs: 1 - s of positives, s of negatives above a margin; s cosines.

    It is averaged over the queries. Pairs with a memory make a term of their own. Source: the code
    of ROADMAP, which follows that of Wang et al.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        neg_margin: float = option(
            0.5,
            at_least=-1.0,
            at_most=1.0,
            help="cosine up to which negative pairs cost nothing",
            search={"linear": [0.0, 0.9]},
        )
        memory_weight: float = option(1.0, at_least=0.0, help="factor of the term of the memory")

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = widened(embeddings)
            labels = labels.to(queries.device, non_blocking=True)
            value = self._term(queries, labels, queries, labels) if own else 0.0
            if others is not None:
                others = widened(others).to(queries.dtype)
                other_labels = other_labels.to(queries.device, non_blocking=True)
                weight = self.config.memory_weight if own else 1.0
                value = value + weight * self._term(queries, labels, others, other_labels)
            return value

    def _term(self, queries: Tensor, labels: Tensor, others: Tensor, other_labels: Tensor):
        scores = queries @ others.T
        same = labels.unsqueeze(1) == other_labels
        positive = (1 - scores) * (same & (scores < 1 - SAME))
        negative = scores * (~same & (scores > self.config.neg_margin))
        return (positive + negative).sum() / len(queries)  # NaN x 0 is NaN: nothing is hidden
