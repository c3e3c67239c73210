"""SmoothAP: ranks counted with a sigmoid."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.ranking import AveragePrecision, SoftRanks
from benchmark.losses.kernels.steps import Sigmoid


@LOSSES.register("smooth_ap", display="SmoothAP", paper="Brown et al., ECCV 2020")
class SmoothAP(SoftRankLoss):
    """Mean over queries of 1 - AP, with a sigmoid in place of the step (Smooth-AP, Eq. 5 to 7).

    For query q with positives P and score s_k of item k::

        r+_k = 1 + sum over j in P, j != k, of sigmoid((s_j - s_k) / tau)
        r_k  = 1 + sum over all j != k of sigmoid((s_j - s_k) / tau)
        AP_q = 1/|P| sum over k in P of r+_k / r_k
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SoftRankLoss.Config):
        tau: float = option(
            0.01, above=0.0, help="sigmoid temperature, cosine units", search={"times": [0.1, 10.0]}
        )

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), AveragePrecision())
