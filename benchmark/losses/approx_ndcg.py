"""ApproxNDCG: the smooth NDCG of learning to rank."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.kernels.measures import DiscountedGain
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Sigmoid
from benchmark.losses.smooth_ndcg import SmoothNDCG


@LOSSES.register("approx_ndcg", display="ApproxNDCG", paper="Qin et al., Inf. Retr. 2010")
class ApproxNDCG(SmoothNDCG):
    """Mean over queries of 1 - NDCG with the approximate positions of Qin et al. (Eq. 13)::

        position of p = 1 + sum over all j != p of sigmoid(alpha (s_j - s_p))

    This is smooth NDCG at tau = 1 / alpha, on the documents of a query alone: the query itself is
    not one of them.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        alpha: float = option(
            100.0,
            above=0.0,
            help="steepness of the sigmoid, per unit of cosine",
            search={"times": [0.1, 10.0]},
        )
        include_query: bool = option(
            False, help="count a query of the batch as its own positive, as image retrieval does"
        )

    def soft_ranks(self):
        return SoftRanks(1.0 / self.config.alpha, Sigmoid(), Sigmoid(), DiscountedGain())
