"""Losses of Recall@k: ranks from a sigmoid or from SupAP's bound, and similarity mixup."""

from dataclasses import dataclass

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Generator, Tensor

from benchmark.core.errors import ConfigError
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.ranking import Recall, SoftRanks
from benchmark.losses.kernels.steps import Exact, Sigmoid
from benchmark.losses.roadmap import SupAP, upper_bound


@dataclass(frozen=True, kw_only=True)
class RecallConfig(SoftRankLoss.Config):
    """What the losses of Recall@k share."""

    tau: float = option(
        0.01,
        above=0.0,
        help="sigmoid temperature of ranks, cosine units",
        search={"times": [0.1, 10.0]},
    )
    ks: list[PositiveInt] = option([1, 2, 4, 8, 16], min_length=1, help="the k of Recall@k")


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
    class Config(RecallConfig):
        temperature: float = option(
            1.0, above=0.0, help="sigmoid temperature of k - rank", search={"times": [0.1, 10.0]}
        )

    def measure(self) -> Recall:
        """Return what the loss makes of ranks."""
        ks = tuple(self.config.ks)
        return Recall(ks, (self.config.temperature,) * len(ks))

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), self.measure())


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


@LOSSES.register("recall_at_k", display="Recall@k surrogate", paper="Patel et al., CVPR 2022")
class RecallAtK(SoftRankLoss):
    """Mean over queries of 1 - the mean over k of a soft Recall@k (Patel et al., Eq. 6 to 8).

    For query q with positives P and score s_p of positive p::

        r_p  = 1 + sum over all j != p of sigmoid((s_j - s_p) / tau)
        R_k  = min(k, sum over p in P of sigmoid((k - r_p) / t_k)) / min(k, |P|)

    The query is never its own positive, but it is ranked with the others. ``simix`` adds virtual
    images to the batch: for each pair of images of a class a point between their embeddings, drawn
    evenly (section 3.3). They are queries and references like the others. A class of n images then
    has n (n + 1) / 2, so that time and memory grow with the square of (n + 1) / 2.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(RecallConfig):
        include_query: bool = option(
            True, help="rank the query of the batch with the others, as the published code does"
        )
        temperatures: list[PositiveFloat] = option(
            [1.0],
            min_length=1,
            help="sigmoid temperature t_k of each k, or one for all, in ranks",
        )
        simix: bool = option(False, help="add virtual images between those of a class")

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        if len(config.temperatures) not in (1, len(config.ks)):
            problem = f"temperatures  {config.temperatures} (allowed: one, or one for each of ks)"
            raise ConfigError("loss 'recall_at_k'", [problem])

    def soft_ranks(self):
        ks, temperatures = self.config.ks, self.config.temperatures
        temperatures = temperatures * len(ks) if len(temperatures) == 1 else temperatures
        measure = Recall(tuple(ks), tuple(temperatures), saturating=True)
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), measure)

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        if self.config.simix:
            embeddings, labels = mixed(embeddings, labels.cpu(), generator)
        return super().compare(embeddings, labels, others, other_labels, own, generator)


def mixed(embeddings: Tensor, labels: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor]:
    """Return a batch, (B, D) and labels (B,), and a virtual image for each pair of a class."""
    first, second = torch.triu(labels.unsqueeze(1) == labels, diagonal=1).nonzero(as_tuple=True)
    source = embeddings.device if generator is None else generator.device
    share = torch.rand(len(first), 1, generator=generator, device=source, dtype=torch.float64)
    virtual = torch.lerp(embeddings[second], embeddings[first], share.to(embeddings))
    return torch.cat([embeddings, virtual]), torch.cat([labels, labels[first]])
