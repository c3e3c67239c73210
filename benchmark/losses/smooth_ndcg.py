"""Smooth NDCG: discounted gain with ranks counted by a sigmoid."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.graded import graded_losses
from benchmark.losses.kernels.measures import DiscountedGain
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Sigmoid


@LOSSES.register("smooth_ndcg", display="Smooth NDCG", paper="Ramzi et al., TPAMI 2025")
class SmoothNDCG(SoftRankLoss):
    """Mean over queries of 1 - NDCG, ranks as in SmoothAP.

    With the rank r_p of relevant item p and its relevance l_p::

        DCG = sum over p of (2^l_p - 1) / log2(1 + r_p)
        NDCG = DCG / its largest value

    Relevance is 1 for images of the query's class. With labels of several levels it is the number
    of levels that both images share: in a dataset with categories 2 for the class, 1 for the rest
    of the category (HAPPIER). Queries with no other image of their class are left out.
    """

    hierarchical = True

    @dataclass(frozen=True, kw_only=True)
    class Config(SoftRankLoss.Config):
        tau: float = option(
            0.01, above=0.0, help="sigmoid temperature, cosine units", search={"times": [0.1, 10.0]}
        )

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), DiscountedGain())

    def rank(self, scores, relation, scale, gradient, generator):
        include = self.config.include_query
        return graded_losses(self.soft_ranks(), scores, relation, scale, include, gradient)
