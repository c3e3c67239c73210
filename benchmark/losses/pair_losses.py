"""Losses of pairs, triplets and proxies of published code, which the library does not have."""

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.core.errors import RunError
from benchmark.losses import implements
from benchmark.losses.base import ComparingLoss, widened
from benchmark.losses.kernels.relation import Positives

SAME = 1e-5  # positives this close to a cosine of 1 cost nothing: the query itself, or a copy of it
SEMIHARD_GAP = 0.2  # of Roth's code, whatever the margin
OF_TRIPLET = 3  # images: anchor, positive, negative


@implements("cosine_contrastive")
class CosineContrastive(ComparingLoss):
    """The sum over a query's pairs: 1 - s of positives, s of negatives above a margin; s cosines.

    It is averaged over the queries. Pairs with a memory make a term of their own. Source: the code
    of ROADMAP, which follows that of Wang et al.
    """

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        queries = widened(embeddings)
        labels = labels.to(queries.device, non_blocking=True)
        value = self._term(queries, labels, queries, labels) if own else 0.0
        if others is not None:
            others = widened(others).to(queries.dtype)
            other_labels = other_labels.to(queries.device, non_blocking=True)
            weight = self.config.memory_weight if own else 1.0
            value = value + weight * self._term(queries, labels, others, other_labels)
        return value

    def _term(self, queries: Tensor, labels: Tensor, others: Tensor, other_labels: Tensor):
        scores = queries @ others.T
        same = labels.unsqueeze(1) == other_labels
        positive = (1 - scores) * (same & (scores < 1 - SAME))
        negative = scores * (~same & (scores > self.config.neg_margin))
        return (positive + negative).sum() / len(queries)  # NaN x 0 is NaN: nothing is hidden


@implements("triplet_mined")
class TripletMined(ComparingLoss):
    """Mean over triplets of [m + d(a, p) - d(a, n)]+ / 2 with squared Euclidean d.

    The batch is a, p, n, a, p, n, ... as the sampler ``mined_triplets`` makes it. Any other batch
    is an error.
    """

    group = OF_TRIPLET

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        of_anchor, of_positive, of_negative = (labels[i::OF_TRIPLET] for i in range(OF_TRIPLET))
        if (
            len(labels) % OF_TRIPLET
            or (of_anchor != of_positive).any()
            or (of_anchor == of_negative).any()
        ):
            raise RunError(
                "'triplet_mined' got a batch that is not laid out as triplets; train it with the "
                "sampler 'mined_triplets'"
            )
        rows = widened(embeddings)
        anchors, positives, negatives = rows.unflatten(0, (-1, OF_TRIPLET)).unbind(1)
        near = (anchors - positives).square().sum(1)
        far = (anchors - negatives).square().sum(1)
        return (self.config.margin + near - far).clamp(min=0).mean() / 2


@implements("triplet_per_anchor")
class TripletPerAnchor(ComparingLoss):
    """Mean over anchors of [d(a, p) - d(a, n) + margin]+ with squared Euclidean d.

    The positive is drawn among the positives farther than the nearest negative. The negative is
    drawn among the negatives nearer than the farthest positive. If there are no such items, all
    positives or negatives are drawn from. With ``mining`` semihard the positive is drawn among all,
    and the negative among the negatives farther than the positive by less than 0.2, in distances
    that are not squared. Anchors without a positive are left out. A batch without a positive is an
    error. A batch without negatives costs 0. Source: the code of Roth and Brattoli, which called
    the first rule semi-hard until 16 March 2020, and the second rule since.
    """

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        Positives.from_labels(
            labels, other_labels, torch.device("cpu"), own=own
        ).require_positives()
        queries = widened(embeddings)
        labels = labels.to(queries.device)
        pool, pool_labels = (queries, labels) if own else (queries[:0], labels[:0])
        if others is not None:
            pool = torch.cat([pool, others.to(queries.dtype)])
            pool_labels = torch.cat([pool_labels, other_labels.to(queries.device)])
        lengths = queries.square().sum(1)[:, None] + pool.square().sum(1)
        distances = (lengths - 2 * queries @ pool.T).clamp(min=0)
        same = labels[:, None] == pool_labels
        positive = same.clone()
        if own:
            positive.fill_diagonal_(False)
        anchors = (positive.any(1) & ~same.all(1)).nonzero()[:, 0]
        zero = 0.0 * (queries.sum() + pool.sum())  # NaN for rows that no triplet may draw
        if not len(anchors):
            return zero
        distances = distances[anchors]
        positive = positive[anchors]
        negative = ~same[anchors]
        fixed = distances.detach()
        rows = torch.arange(len(anchors), device=queries.device)
        source = torch.device("cpu") if generator is None else generator.device

        def drawn(allowed: Tensor, wanted: Tensor) -> Tensor:
            """Return the distance of one item an anchor: a wanted one, where there are any."""
            among = torch.where(wanted.any(1, keepdim=True), wanted, allowed).double()
            columns = torch.multinomial(among.to(source), 1, generator=generator)[:, 0]
            return distances[rows, columns.to(queries.device)]

        if self.config.mining == "semihard":
            near = drawn(positive, positive)
            beyond = fixed.sqrt() - near.detach().sqrt().unsqueeze(1)
            far = drawn(negative, negative & (beyond > 0.0) & (beyond < SEMIHARD_GAP))
        else:
            nearest = fixed.masked_fill(~negative, torch.inf).amin(1, keepdim=True)
            farthest = fixed.masked_fill(~positive, -torch.inf).amax(1, keepdim=True)
            near = drawn(positive, positive & (fixed > nearest))
            far = drawn(negative, negative & (fixed < farthest))
        return (near - far + self.config.margin).clamp(min=0).mean() + zero


@implements("proxy_nca_others")
class ProxyNCAOthers(ComparingLoss):
    """Mean over images of s d(x, own) + log sum over other proxies p of exp(-s d(x, p)).

    d are squared distances of rows of unit length, s is the scale. The library's ``proxy_nca`` sums
    over all proxies and is at least 0. This loss has no lower bound. Source: equation 4 of the
    paper, and the code of Roth and Brattoli, which scales rows and proxies by 3, so that s is 9.
    """

    def __init__(self, config, *, embedding_dim=None, num_classes=None, seed=0):
        super().__init__(config)
        self.num_classes = num_classes
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(num_classes, embedding_dim, generator=generator)
        self.proxies = torch.nn.Parameter(drawn / 8)

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        if others is not None:
            raise RunError("proxy_nca_others compares with its proxies and takes no references")
        queries = F.normalize(widened(embeddings))
        proxies = F.normalize(self.proxies.to(queries.dtype))
        distances = self.config.softmax_scale * (2 - 2 * queries @ proxies.T)
        same = F.one_hot(labels.to(queries.device), len(proxies)).bool()
        rest = torch.logsumexp((-distances).masked_fill(same, -torch.inf), dim=1)
        return (distances[same] + rest).mean()
