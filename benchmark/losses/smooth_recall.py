"""Smooth recall: Recall@k with ranks counted by a sigmoid."""

from dataclasses import dataclass

from pydantic import PositiveInt

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.measures import Recall
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Sigmoid


@LOSSES.register("smooth_recall", display="Smooth recall", paper="Ramzi et al., TPAMI 2025")
class SmoothRecall(SoftRankLoss):
    """Mean over queries of 1 - the mean over k of a soft Recall@k, ranks as in SmoothAP.

    For query q with positives P and score s_p of positive p::

        r_p  = 1 + sum over all j != p of sigmoid((s_j - s_p) / tau)
        R_k  = sum over p in P of sigmoid((k - r_p) / temperature) / min(k, |P|)

    The query counts as one of its positives, and R_k may exceed 1, as in the published code: both
    differ from ``recall_at_k``.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SoftRankLoss.Config):
        tau: float = option(
            0.01,
            above=0.0,
            help="sigmoid temperature of ranks, cosine units",
            search={"times": [0.1, 10.0]},
        )
        ks: list[PositiveInt] = option([1, 2, 4, 8, 16], min_length=1, help="the k of Recall@k")
        temperature: float = option(
            1.0, above=0.0, help="sigmoid temperature of k - rank", search={"times": [0.1, 10.0]}
        )

    def measure(self) -> Recall:
        """Return what the loss makes of ranks."""
        ks = tuple(self.config.ks)
        return Recall(ks, (self.config.temperature,) * len(ks))

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), self.measure())
