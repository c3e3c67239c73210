"""FastAP and SoftBinAP: average precision of a soft histogram of scores."""

import torch
from torch import Tensor

from benchmark.losses import implements
from benchmark.losses.base import RankingLoss, ValueAndSlope
from benchmark.losses.kernels.relation import Relation


@implements("fast_ap")
class FastAP(RankingLoss):
    """Mean over queries of 1 - FastAP (Eq. 14), with ``bins`` intervals of distance^2 on [0, 4].

    L2-normalised rows have squared distance 2 - 2s, so the ``bins + 1`` centers are even in the
    score s as well. The query is never part of its own histogram. Time and memory O(Q x R),
    whatever the number of bins. Plain formula: ``fast_ap`` of ``conformance.formulas``.
    """

    cosine = True

    def rank(self, scores, relation, scale, gradient, generator):
        return soft_histogram_ap(scores, relation, self.config.bins + 1, scale, False, gradient)


@implements("softbin_ap")
class SoftBinAP(RankingLoss):
    """Mean over queries of 1 - quantised AP (Eq. 7 to 11), with ``bins`` centers on [lowest, 1].

    ``query_weights="class"`` weights the queries of Eq. 12 so that every class of the batch has the
    same share of the mean (section 4.2, class sampling). ``ties="aware"`` takes the precision of
    Eq. 13 instead of Eq. 9. Time and memory O(Q x R), whatever the number of bins. Plain formula:
    ``softbin_ap`` of ``conformance.formulas``.
    """

    def rank(self, scores, relation, scale, gradient, generator):
        config = self.config
        tie_aware = config.ties == "aware"
        include = config.include_query
        return soft_histogram_ap(
            scores,
            relation,
            config.bins,
            scale,
            include,
            gradient,
            tie_aware,
            config.lowest,
        )

    def on_scores(self, scores, relation, gradient, generator):
        if self.config.query_weights == "uniform":
            return super().on_scores(scores, relation, gradient, generator)
        assert relation.class_weights is not None  # a relation of labels
        weights = relation.class_weights.to(scores.dtype)
        values, derivative = self.rank(scores, relation, 1.0, gradient, generator)
        if gradient:
            derivative *= weights.unsqueeze(1)
        return values @ weights, derivative


def soft_histogram_ap(
    scores: Tensor,
    relation: Relation,
    centers: int,
    scale: float,
    include_query: bool,
    gradient: bool,
    tie_aware: bool = False,
    lowest: float = -1.0,
) -> ValueAndSlope:
    """Return 1 - AP of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

    ``centers`` bin centers lie evenly on [lowest, 1], best score first. A score is shared linearly
    between the two centers around it, so it touches two bins however many there are. With h, h+ the
    histograms of all and of the positives, and H, H+ their running sums::

        AP = 1/|P| sum over bins m of h+_m H+_m / H_m

    (FastAP Eq. 14; listwise loss Eq. 9 to 11.) ``tie_aware`` takes the precision in the middle of
    each bin instead, (1 + H+_m + H+_(m-1)) / (1 + H_m + H_(m-1)) (listwise loss Eq. 13). Without
    ``include_query`` an own query is in neither histogram. Queries without a positive have 0. Time
    and memory O(Q x R). Scores outside [lowest, 1] count as the nearest end, without gradient.
    Plain formula: ``_histogram_ap`` of ``conformance.formulas``.
    """
    width = (centers - 1) / (1.0 - lowest)
    raw = (1.0 - scores).mul_(width)
    position = raw.clamp(0.0, centers - 1.0)
    bins = position.floor().long().clamp_(0, centers - 2)
    share = position.sub_(bins)  # of the upper bin; NaN scores stay NaN here and reach the value
    weight = torch.ones_like(share)
    left_out = relation.own and not include_query
    if left_out:
        weight.diagonal(relation.diagonal).fill_(0.0)
        share.diagonal(relation.diagonal).fill_(0.0)
    total = _histogram(bins, weight, share, centers)

    # column m of ``reach`` says how often each bin counts in the precision at bin m
    reach = torch.ones(centers, centers, dtype=scores.dtype, device=scores.device).triu_()
    if tie_aware:
        reach.mul_(2.0).fill_diagonal_(1.0)
    running = total @ reach
    if tie_aware:
        running.add_(1.0)
    else:
        running.clamp_(min=torch.finfo(scores.dtype).tiny)
    values = scores.new_zeros(relation.queries)
    slope_total = torch.zeros_like(total)
    slopes = []
    for group in relation.blocks(include_query, scores.numel() * max(1, relation.references)):
        queries = group.queries
        columns = group.columns
        group_bins = bins[queries].gather(1, columns)
        group_share = share[queries].gather(1, columns)
        positive = _histogram(group_bins, torch.ones_like(group_share), group_share, centers)
        running_positive = positive @ reach
        below = running[queries]
        if tie_aware:
            running_positive.add_(1.0)
        ratio = running_positive / below
        size = columns.shape[1]
        values[queries] = 1.0 - (positive * ratio).sum(1) / size
        if gradient:
            # what is in a bin counts in the precision at that bin and at every later one
            slope_total[queries] = (scale / size) * ((positive * ratio / below) @ reach.T)
            slope = (-scale / size) * (ratio + (positive / below) @ reach.T)
            slopes.append((queries, columns, slope.diff(dim=1).gather(1, group_bins)))
    if not gradient:
        return values, None
    derivative = slope_total.diff(dim=1).gather(1, bins)
    if left_out:
        derivative.diagonal(relation.diagonal).fill_(0.0)
    for queries, columns, slope in slopes:
        rows = derivative[queries]
        derivative[queries] = rows.scatter_(1, columns, slope + rows.gather(1, columns))
    inside = raw.ge(0.0).logical_and_(raw <= centers - 1.0)
    return values, derivative.mul_(inside).mul_(-width)


def _histogram(bins: Tensor, weight: Tensor, share: Tensor, centers: int) -> Tensor:
    """Return soft histograms (Q, centers): items (Q, R) give ``share`` to the next bin.

    One-dimensional scatter-add: in torch's deterministic mode it is reproducible on a GPU as well.
    """
    rows = len(bins)
    row = torch.arange(rows, device=bins.device).unsqueeze(1)
    flat = (bins + row * centers).view(-1)
    lower = weight.new_zeros(rows * centers)
    lower.scatter_add_(0, flat, weight.reshape(-1))
    upper = torch.zeros_like(lower).scatter_add_(0, flat, share.reshape(-1))
    lower = lower.view(rows, centers)
    upper = upper.view(rows, centers)
    result = lower - upper
    result[:, 1:] += upper[:, :-1]
    return result
