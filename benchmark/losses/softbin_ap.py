"""SoftBinAP: the listwise quantised AP."""

from dataclasses import dataclass
from typing import Literal

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.histogram import soft_histogram_ap


@LOSSES.register("softbin_ap", display="SoftBinAP", paper="Revaud et al., ICCV 2019")
class SoftBinAP(RankingLoss):
    """Mean over queries of 1 - quantised AP (Eq. 7 to 11), with ``bins`` centers on [-1, 1].

    ``query_weights="class"`` weights the queries of Eq. 12 so that every class of the batch has the
    same share of the mean (section 4.2, class sampling). ``ties="aware"`` takes the precision of
    Eq. 13 instead of Eq. 9. Time and memory O(Q x R), whatever the number of bins.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(RankingLoss.Config):
        bins: int = option(
            20,
            at_least=2,
            at_most=10_000,
            help="bin centers on [-1, 1], both ends included",
            search={"times": [0.25, 4.0]},
        )
        query_weights: Literal["uniform", "class"] = option(
            "uniform",
            help="uniform: every query of the batch weighs the same; class: every class does",
        )
        ties: Literal["ignore", "aware"] = option(
            "ignore",
            help="aware: precision at the middle of each bin (tie-aware AP), instead of its end",
        )

    def rank(self, scores, relation, scale, gradient, generator):
        config = self.config
        tie_aware, include = config.ties == "aware", config.include_query
        return soft_histogram_ap(scores, relation, config.bins, scale, include, gradient, tie_aware)

    def on_scores(self, scores, relation, gradient, generator):
        if self.config.query_weights == "uniform":
            return super().on_scores(scores, relation, gradient, generator)
        assert relation.class_weights is not None  # a relation of labels
        weights = relation.class_weights.to(scores.dtype)
        values, derivative = self.rank(scores, relation, 1.0, gradient, generator)
        if gradient:
            derivative *= weights.unsqueeze(1)
        return values @ weights, derivative
