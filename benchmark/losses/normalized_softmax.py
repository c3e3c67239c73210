"""Normalised softmax, from pytorch-metric-learning."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.pml import ProxyLoss


@LOSSES.register(
    "normalized_softmax",
    display="Normalised softmax",
    paper="Zhai and Wu, BMVC 2019",
    kind="proxy",
    accepts_references=False,
)
class NormalizedSoftmax(ProxyLoss):
    """Cross-entropy of cosines with one proxy a class, divided by ``temperature``."""

    @dataclass(frozen=True, kw_only=True)
    class Config:
        temperature: float = option(0.05, above=0.0, help="divides the cosines")

    def make(self, num_classes, embedding_dim):
        from pytorch_metric_learning import losses

        return losses.NormalizedSoftmaxLoss(
            num_classes, embedding_dim, temperature=self.config.temperature
        )
