"""SupRank NDCG: discounted gain with SupAP's bound in the ranks."""

from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.kernels.measures import DiscountedGain
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.steps import Exact
from benchmark.losses.smooth_ndcg import SmoothNDCG
from benchmark.losses.sup_ap import SupAP, upper_bound


@LOSSES.register("sup_ndcg", display="SupRank NDCG", paper="Ramzi et al., TPAMI 2025")
class SupNDCG(SmoothNDCG):
    """Smooth NDCG with SupAP's ranks: its bound for less relevant items, exact for the others.

    The published configurations have ``offset`` 1.44, or 1.0 with ``start`` 0 (iNaturalist).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(SupAP.Config):
        pass

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Exact(), upper_bound(self.config), DiscountedGain())
