"""SupAP: an upper bound of 1 - AP with a gradient wherever the ranking is wrong."""

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.measures import AveragePrecision
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Exact, UpperBound


@LOSSES.register("sup_ap", display="SupAP", paper="Ramzi et al., NeurIPS 2021")
class SupAP(SoftRankLoss):
    """Mean over queries of 1 - AP, with exact ranks among the positives and an upper bound of the
    rank among the negatives (ROADMAP, Eq. 3 to 5).

    For query q with positives P, negatives N and score s_k of item k::

        r+_k = 1 + number of j in P, j != k, with s_j >= s_k             (no gradient)
        r-_k = sum over j in N of h(s_j - s_k)
        h(t) = sigmoid(t / tau)                    for t < 0
               sigmoid(t / tau) + start            for 0 <= t <= delta
               rho (t - delta) + offset            for t > delta
        AP_q = 1/|P| sum over k in P of r+_k / (r+_k + r-_k)

    ``offset`` None makes h continuous at delta: sigmoid(delta / tau) + start. At a tie (t = 0) the
    paper's two cases overlap. The upper one is taken, because only then is h an upper bound of the
    step.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SoftRankLoss.Config):
        tau: float = option(
            0.01, above=0.0, help="sigmoid temperature, cosine units", search={"times": [0.1, 10.0]}
        )
        rho: float = option(
            100.0,
            at_least=0.0,
            help="slope beyond delta, per unit of cosine",
            search={"times": [0.1, 10.0]},
        )
        delta: float = option(
            0.05, at_least=0.0, help="score difference where the linear part begins"
        )
        offset: float | None = option(
            None, help="value where the linear part begins; null: sigmoid(delta / tau) + start"
        )
        start: float = option(0.5, at_least=0.0, help="added to the sigmoid at and above a tie")

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Exact(), upper_bound(self.config), AveragePrecision())


def upper_bound(config: SupAP.Config) -> UpperBound:
    """Return h, in units of tau."""
    bend, slope = config.delta / config.tau, config.rho * config.tau
    return UpperBound(bend, slope, config.start, config.offset)
