"""Losses of soft ranks: of average precision, NDCG, Recall@k, and of negatives before positives."""

import torch
from torch import Generator, Tensor

from benchmark.core.errors import ConfigError
from benchmark.losses import implements
from benchmark.losses.base import SoftRankLoss
from benchmark.losses.kernels.ranking import (
    AveragePrecision,
    DiscountedGain,
    MeanPenalty,
    Measure,
    Recall,
    SoftRanks,
)
from benchmark.losses.kernels.steps import Exact, Sigmoid, Uncounted, UpperBound


@implements("smooth_ap")
class SmoothAP(SoftRankLoss):
    """Mean over queries of 1 - AP, with a sigmoid in place of the step (Smooth-AP, Eq. 5 to 7).

    For query q with positives P and score s_k of item k::

        r+_k = 1 + sum over j in P, j != k, of sigmoid((s_j - s_k) / tau)
        r_k  = 1 + sum over all j != k of sigmoid((s_j - s_k) / tau)
        AP_q = 1/|P| sum over k in P of r+_k / r_k
    """

    measure: Measure = AveragePrecision()

    def soft_ranks(self):
        return SoftRanks(self.config.tau, Sigmoid(), Sigmoid(), self.measure)


@implements("sup_ap")
class SupAP(SmoothAP):
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

    def soft_ranks(self):
        config = self.config
        bend = config.delta / config.tau
        slope = config.rho * config.tau
        bound = UpperBound(bend, slope, config.start, config.offset)
        return SoftRanks(config.tau, Exact(), bound, self.measure)


@implements("smooth_ndcg")
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
    measure = DiscountedGain()


@implements("sup_ndcg")
class SupNDCG(SupAP):
    """Smooth NDCG with SupAP's ranks: its bound for less relevant items, exact for the others.

    The published configurations have ``offset`` 1.44, or 1.0 with ``start`` 0 (iNaturalist).
    """

    hierarchical = True
    measure = DiscountedGain()


@implements("approx_ndcg")
class ApproxNDCG(SoftRankLoss):
    """Mean over queries of 1 - NDCG with the approximate positions of Qin et al. (Eq. 13)::

        position of p = 1 + sum over all j != p of sigmoid(alpha (s_j - s_p))

    This is smooth NDCG at tau = 1 / alpha, on the documents of a query alone: the query itself is
    not one of them.
    """

    hierarchical = True

    def soft_ranks(self):
        return SoftRanks(1.0 / self.config.alpha, Sigmoid(), Sigmoid(), DiscountedGain())


@implements("smooth_recall")
class SmoothRecall(SmoothAP):
    """Mean over queries of 1 - the mean over k of a soft Recall@k, ranks as in SmoothAP.

    For query q with positives P and score s_p of positive p::

        r_p  = 1 + sum over all j != p of sigmoid((s_j - s_p) / tau)
        R_k  = sum over p in P of sigmoid((k - r_p) / temperature) / min(k, |P|)

    The query counts as one of its positives, and R_k may exceed 1, as in the published code: both
    differ from ``recall_at_k``.
    """

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.measure = Recall(config.ks, [config.temperature] * len(config.ks))


@implements("sup_recall")
class SupRecall(SupAP, SmoothRecall):
    """Smooth recall with the ranks of SupAP: r_p = r+_p + r-_p as defined there.

    The published configurations have ``offset`` 1.44, or 1.0 with ``start`` 0 (iNaturalist).
    """


@implements("recall_at_k")
class RecallAtK(SmoothAP):
    """Mean over queries of 1 - the mean over k of a soft Recall@k (Patel et al., Eq. 6 to 8).

    For query q with positives P and score s_p of positive p::

        r_p  = 1 + sum over all j != p of sigmoid((s_j - s_p) / tau)
        R_k  = min(k, sum over p in P of sigmoid((k - r_p) / t_k)) / min(k, |P|)

    The query is never its own positive, but it is ranked with the others. ``simix`` adds virtual
    images to the batch: for each pair of images of a class a point between their embeddings, drawn
    evenly (section 3.3). They are queries and references like the others. A class of n images then
    has n (n + 1) / 2, so that time and memory grow with the square of (n + 1) / 2.
    """

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        temperatures = config.temperatures
        if len(temperatures) == 1:
            temperatures = temperatures * len(config.ks)
        if len(temperatures) != len(config.ks):
            problem = f"temperatures  {temperatures} (allowed: one, or one for each of ks)"
            raise ConfigError("loss 'recall_at_k'", [problem])
        self.measure = Recall(config.ks, temperatures, saturating=True)

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


@implements("pnp")
class PNP(SoftRankLoss):
    """Mean over queries of the mean over their positives of a penalty of R.

    R = sum over negatives j of sigmoid((s_j - s_p) / tau) is the soft number of negatives before
    positive p; other positives do not count. The variants::

        O    R                                  I_u  (1 + R) log(1 + R)
        D_s  log(1 + R)                         I_b  (b R - log(1 + b R)) / b^2
        D_q  1 - (1 + R)^-alpha

    The gradient of I variants grows with R, that of D variants shrinks.
    """

    def soft_ranks(self):
        alpha = self.config.alpha
        b = self.config.b
        penalty, slope = {
            "O": (lambda r: r, torch.ones_like),
            "D_s": (torch.log1p, lambda r: 1.0 / (1.0 + r)),
            "D_q": (
                lambda r: 1.0 - (1.0 + r).pow(-alpha),
                lambda r: alpha * (1.0 + r).pow(-alpha - 1.0),
            ),
            "I_u": (lambda r: (1.0 + r) * torch.log1p(r), lambda r: 1.0 + torch.log1p(r)),
            "I_b": (lambda r: (b * r - torch.log1p(b * r)) / b**2, lambda r: r / (1.0 + b * r)),
        }[self.config.variant]
        return SoftRanks(self.config.tau, Uncounted(), Sigmoid(), MeanPenalty(penalty, slope))
