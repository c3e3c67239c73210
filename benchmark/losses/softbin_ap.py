"""SoftBinAP: the listwise quantised AP."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.histogram import soft_histogram_ap
from benchmark.options import option


@LOSSES.register("softbin_ap", display="SoftBinAP", paper="Revaud et al., ICCV 2019")
class SoftBinAP(RankingLoss):
    """Mean over queries of 1 - quantised AP (Eq. 7 to 11), with ``bins`` bin centers on scores in [-1, 1].

    Time and memory O(Q x R), whatever the number of bins.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        bins: int = option(20, at_least=2, help="bin centers on [-1, 1], both ends included")
        include_query: bool = option(
            True, help="count a query of the batch as one of its own positives, as the published code does"
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        bins, include = self.config.bins, self.config.include_query
        return soft_histogram_ap(scores, relation, bins, scale, include_query=include, gradient=gradient)
