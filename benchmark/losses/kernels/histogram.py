"""Average precision of a soft histogram of scores: the core that FastAP and SoftBinAP share."""

import torch
from torch import Tensor

from benchmark.losses.kernels.relation import Relation


def soft_histogram_ap(
    scores: Tensor,
    relation: Relation,
    centers: int,
    scale: float,
    include_query: bool,
    gradient: bool,
    tie_aware: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return 1 - AP of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

    ``centers`` bin centers lie evenly on [-1, 1], best score first. A score is shared linearly
    between the two centers around it, so it touches two bins however many there are. With h, h+ the
    histograms of all and of the positives, and H, H+ their running sums::

        AP = 1/|P| sum over bins m of h+_m H+_m / H_m

    (FastAP Eq. 14; listwise loss Eq. 9 to 11.) ``tie_aware`` takes the precision in the middle of
    each bin instead, (1 + H+_m + H+_(m-1)) / (1 + H_m + H_(m-1)) (listwise loss Eq. 13). Without
    ``include_query`` an own query is in neither histogram. Queries without a positive have 0. Time
    and memory O(Q x R). Scores outside [-1, 1] by rounding count as the nearest end, without
    gradient.
    """
    width = (centers - 1) / 2.0
    raw = (1.0 - scores).mul_(width)
    position = raw.clamp(0.0, centers - 1.0)
    bins = position.floor().clamp_(max=centers - 2.0).long().clamp_(0, centers - 2)
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
    running = running.add_(1.0) if tie_aware else running.clamp_(min=torch.finfo(scores.dtype).tiny)
    values = scores.new_zeros(relation.queries)
    slope_total = torch.zeros_like(total)
    slopes = []
    for group in relation.blocks(include_query, scores.numel() * max(1, relation.references)):
        queries, columns = group.queries, group.columns
        group_bins = bins[queries].gather(1, columns)
        group_share = share[queries].gather(1, columns)
        positive = _histogram(group_bins, torch.ones_like(group_share), group_share, centers)
        running_positive, below = positive @ reach, running[queries]
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
    offset = torch.arange(rows, device=bins.device).unsqueeze(1) * centers
    flat = (bins + offset).view(-1)
    lower = weight.new_zeros(rows * centers)
    lower.scatter_add_(0, flat, weight.reshape(-1))
    upper = torch.zeros_like(lower).scatter_add_(0, flat, share.reshape(-1))
    lower, upper = lower.view(rows, centers), upper.view(rows, centers)
    result = lower - upper
    result[:, 1:] += upper[:, :-1]
    return result
