"""ProxyNCA, from pytorch-metric-learning."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    """Neighbourhood component analysis on squared distances to one proxy a class.

    The paper and Roth and Brattoli's code sum over the proxies of other classes alone, the library
    over all. The first has no lower bound, the second is at least 0.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        softmax_scale: float = option(1.0, above=0.0, help="multiplies the squared distances")
        own_proxy_in_sum: bool = option(
            True,
            help="sum over all proxies, as the library does, instead of those of other classes",
        )

    def make(self, num_classes, embedding_dim):
        from pytorch_metric_learning import losses

        if self.config.own_proxy_in_sum:
            return losses.ProxyNCALoss(
                num_classes, embedding_dim, softmax_scale=self.config.softmax_scale
            )
        return OtherProxies(num_classes, embedding_dim, self.config.softmax_scale)


class OtherProxies(nn.Module):
    """ProxyNCA with the sum over the proxies of other classes alone."""

    def __init__(self, num_classes: int, embedding_dim: int, scale: float):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(num_classes, embedding_dim) / 8)
        self.scale = scale

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over images of s d(x, own) + log sum over others of exp(-s d(x, p))."""
        cosines = F.normalize(embeddings) @ F.normalize(self.proxies).T
        distances = self.scale * (2 - 2 * cosines)
        own = F.one_hot(labels, len(self.proxies)).bool()
        others = torch.logsumexp((-distances).masked_fill(own, -torch.inf), dim=1)
        return (distances[own] + others).mean()
