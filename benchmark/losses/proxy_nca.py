"""ProxyNCA, from pytorch-metric-learning."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.pml import ProxyLoss


@LOSSES.register(
    "proxy_nca",
    display="ProxyNCA",
    paper="Movshovitz-Attias et al., ICCV 2017",
    kind="proxy",
    accepts_references=False,
)
class ProxyNCA(ProxyLoss):
    """Neighbourhood component analysis on squared distances to one proxy a class."""

    @dataclass(frozen=True, kw_only=True)
    class Config:
        softmax_scale: float = option(1.0, above=0.0, help="multiplies the squared distances")

    def make(self, num_classes, embedding_dim):
        from pytorch_metric_learning import losses

        return losses.ProxyNCALoss(
            num_classes, embedding_dim, softmax_scale=self.config.softmax_scale
        )
