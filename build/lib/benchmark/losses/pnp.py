"""PNP: penalties of the negatives before each positive."""

from dataclasses import dataclass
from typing import Literal

import torch

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.ranking import MeanPenalty, SoftRanks
from benchmark.losses.kernels.steps import Sigmoid, Uncounted


@LOSSES.register("pnp", display="PNP", paper="Li et al., AAAI 2022")
class PNP(SoftRankLoss):
    """Mean over queries of the mean over their positives of a penalty of R.

    R = sum over negatives j of sigmoid((s_j - s_p) / tau) is the soft number of negatives before
    positive p; other positives do not count. The variants::

        O    R                                  I_u  (1 + R) log(1 + R)
        D_s  log(1 + R)                         I_b  (b R - log(1 + b R)) / b^2
        D_q  1 - (1 + R)^-alpha

    The gradient of I variants grows with R, that of D variants shrinks.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SoftRankLoss.Config):
        variant: Literal["D_s", "D_q", "I_u", "I_b", "O"] = option("D_q", help="penalty of R")
        tau: float = option(
            0.01, above=0.0, help="sigmoid temperature, cosine units", search={"times": [0.1, 10.0]}
        )
        alpha: float = option(
            4.0, above=0.0, help="exponent of variant D_q", search={"linear": [1.0, 8.0]}
        )
        b: float = option(2.0, above=0.0, help="boundary of variant I_b")

    def soft_ranks(self):
        alpha, b = self.config.alpha, self.config.b
        penalty, slope = {
            "O": (lambda r: r, torch.ones_like),
            "D_s": (torch.log1p, lambda r: 1.0 / (1.0 + r)),
            "D_q": (
                lambda r: 1.0 - (1.0 + r).pow(-alpha),
                lambda r: alpha * (1.0 + r).pow(-alpha - 1.0),
            ),
            "I_u": (lambda r: (1.0 + r) * torch.log1p(r), lambda r: 1.0 + torch.log1p(r)),
            "I_b": (lambda r: (b * r - torch.log1p(b * r)) / b**2, lambda r: r / (1.0 + b * r)),
        }[self.config.variant]
        return SoftRanks(self.config.tau, Uncounted(), Sigmoid(), MeanPenalty(penalty, slope))
