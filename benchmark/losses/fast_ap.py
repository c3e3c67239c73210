"""FastAP: AP of a soft histogram of squared distances."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.histogram import soft_histogram_ap


@LOSSES.register("fast_ap", display="FastAP", paper="Cakir et al., CVPR 2019")
class FastAP(RankingLoss):
    """Mean over queries of 1 - FastAP (Eq. 14), with ``bins`` intervals of distance^2 on [0, 4].

    L2-normalised rows have squared distance 2 - 2s, so the ``bins + 1`` centers are even in the
    score s as well. The query is never part of its own histogram. Time and memory O(Q x R),
    whatever the number of bins.
    """

    cosine = True

    @dataclass(frozen=True, kw_only=True)
    class Config:
        bins: int = option(
            10,
            at_least=1,
            at_most=10_000,
            help="intervals of squared distance on [0, 4]",
            search={"times": [0.25, 4.0]},
        )

    def rank(self, scores, relation, scale, gradient, generator):
        centers = self.config.bins + 1
        return soft_histogram_ap(scores, relation, centers, scale, False, gradient)
