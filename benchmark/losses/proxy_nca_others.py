"""ProxyNCA with the sum over the proxies of other classes, as its paper has it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from benchmark.core.errors import RunError
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import ComparingLoss, widened


@LOSSES.register(
    "proxy_nca_others",
    display="ProxyNCA (other proxies)",
    paper="Movshovitz-Attias et al., ICCV 2017",
    kind="proxy",
    accepts_references=False,
)
class ProxyNCAOthers(ComparingLoss):
    """Mean over images of s d(x, own) + log sum over other proxies p of exp(-s d(x, p)).

    d are squared distances of rows of unit length, s is the scale. The library's ``proxy_nca`` sums
    over all proxies and is at least 0; this one has no lower bound. Source: equation 4 of the
    paper, and the code of Roth and Brattoli, which scales rows and proxies by 3, so that s is 9.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Hyperparameters."""

        softmax_scale: float = option(
            9.0, above=0.0, help="multiplies the squared distances", search={"times": [0.1, 10.0]}
        )

    def __init__(self, config, *, embedding_dim=None, num_classes=None, seed=0):
        super().__init__(config)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(num_classes, embedding_dim, generator=generator)
        self.proxies = torch.nn.Parameter(drawn / 8)

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        if others is not None:
            raise RunError("proxy_nca_others compares with its proxies and takes no references")
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = F.normalize(widened(embeddings))
            proxies = F.normalize(self.proxies.to(queries.dtype))
            distances = self.config.softmax_scale * (2 - 2 * queries @ proxies.T)
            same = F.one_hot(labels.to(queries.device), len(proxies)).bool()
            rest = torch.logsumexp((-distances).masked_fill(same, -torch.inf), dim=1)
            return (distances[same] + rest).mean()
