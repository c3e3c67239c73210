"""SupRank recall: Recall@k with SupAP's bound in the ranks."""

from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Exact
from benchmark.losses.smooth_recall import SmoothRecall
from benchmark.losses.sup_ap import SupAP, upper_bound


@LOSSES.register("sup_recall", display="SupRank recall", paper="Ramzi et al., TPAMI 2025")
class SupRecall(SmoothRecall):
    """Smooth recall with the ranks of SupAP: r_p = r+_p + r-_p as defined there.

    The published configurations have ``offset`` 1.44, or 1.0 with ``start`` 0 (iNaturalist).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SupAP.Config, SmoothRecall.Config):
        pass

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Exact(), upper_bound(self.config), self.measure())
