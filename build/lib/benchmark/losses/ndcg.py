"""Losses of NDCG: of one level of relevance, or of several."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.ranking import DiscountedGain, SoftRanks
from benchmark.losses.kernels.steps import Exact, Sigmoid
from benchmark.losses.roadmap import SupAP, upper_bound
from benchmark.losses.smooth_ap import SmoothAP


@LOSSES.register("smooth_ndcg", display="Smooth NDCG", paper="Ramzi et al., TPAMI 2025")
class SmoothNDCG(SmoothAP):
    """Mean over queries of 1 - NDCG, ranks as in SmoothAP.

    With the rank r_p of relevant item p and its relevance l_p::

        DCG = sum over p of (2^l_p - 1) / log2(1 + r_p)
        NDCG = DCG / its largest value

    Relevance is 1 for images of the query's class. With labels of several levels it is the number
    of levels that both images share: in a dataset with categories 2 for the class, 1 for the rest
    of the category (HAPPIER). Queries with no other image of their class are left out.
    """

    hierarchical = True

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), DiscountedGain())


@LOSSES.register("sup_ndcg", display="SupRank NDCG", paper="Ramzi et al., TPAMI 2025")
class SupNDCG(SupAP):
    """Smooth NDCG with SupAP's ranks: its bound for less relevant items, exact for the others.

    The published configurations have ``offset`` 1.44, or 1.0 with ``start`` 0 (iNaturalist).
    """

    hierarchical = True

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Exact(), upper_bound(self.config), DiscountedGain())


@LOSSES.register("approx_ndcg", display="ApproxNDCG", paper="Qin et al., Inf. Retr. 2010")
class ApproxNDCG(SoftRankLoss):
    """Mean over queries of 1 - NDCG with the approximate positions of Qin et al. (Eq. 13)::

        position of p = 1 + sum over all j != p of sigmoid(alpha (s_j - s_p))

    This is smooth NDCG at tau = 1 / alpha, on the documents of a query alone: the query itself is
    not one of them.
    """

    hierarchical = True

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
