"""Right implementations of SmoothAP in the styles that people write them in."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.functional import normalize


def scores_of(embeddings):
    return embeddings @ embeddings.T


def masks(labels, dtype, pool_labels=None):
    """Return which pairs of items differ (R, R), and which are positives of a query (Q, R)."""
    pool_labels = labels if pool_labels is None else pool_labels
    targets = (labels.unsqueeze(1) == pool_labels).to(dtype)
    return 1 - torch.eye(len(pool_labels), dtype=dtype), targets


def dense_smooth_ap(
    embeddings,
    labels,
    ref_emb=None,
    ref_labels=None,
    *,
    tau=0.01,
    direction=1.0,
    first=1.0,
    self_step=0.0,
    include_query=True,
    singles=False,
    stop_rank=False,
    hide_diagonal=False,
    scores=scores_of,
    per_query=lambda ap, targets: ap.sum(1) / targets.sum(1),
    reduce=torch.mean,
    finish=lambda value: value,
):
    """SmoothAP over all triples at once; the arguments are there to plant faults."""
    s = scores(embeddings) if ref_emb is None else embeddings @ ref_emb.T
    others, targets = masks(labels, s.dtype, ref_labels)
    least = 2 if ref_emb is None else 1
    if hide_diagonal or not include_query:
        targets = targets * (1 - torch.eye(*targets.shape, dtype=s.dtype))
        least = 1
    steps = torch.sigmoid(direction * (s.unsqueeze(1) - s.unsqueeze(2)) / tau)
    steps = steps * (others + self_step * (1 - others))
    if hide_diagonal or not include_query:
        steps = steps * (1 - torch.eye(*targets.shape, dtype=s.dtype)).unsqueeze(1)
    rank = first + steps.sum(2)
    if stop_rank:
        rank = rank.detach()
    among = first + (steps * targets.unsqueeze(1)).sum(2)
    losses = 1 - per_query(among / rank * targets, targets)
    return finish(reduce(losses if singles else losses[targets.sum(1) >= least]))


def float32_inside(embeddings, labels):
    return dense_smooth_ap(embeddings.float(), labels)


def query_by_query(embeddings, labels):
    losses = []
    for query in range(len(labels)):
        positives = (labels == labels[query]).nonzero().flatten()
        if len(positives) < 2:
            continue
        scores = embeddings @ embeddings[query]
        precision = 0.0
        for k in positives:
            steps = torch.sigmoid(((scores - scores[k]) / 0.01).clamp(-50, 50))
            rank = 0.5 + steps.sum()
            precision = precision + (0.5 + steps[positives].sum()) / (rank + 1e-9)
        losses.append(1 - precision / len(positives))
    return torch.stack(losses).mean()


def from_distances(embeddings, labels):
    return dense_smooth_ap(embeddings, labels, scores=lambda e: 1 - torch.cdist(e, e) ** 2 / 2)


def of_cosines(embeddings, labels):
    return dense_smooth_ap(normalize(embeddings, dim=1), labels).reshape(1)


class ModuleWithReferences(torch.nn.Module):
    def __init__(self, tau=0.01):
        super().__init__()
        self.tau = tau

    def forward(self, embeddings, labels, indices=None, ref_emb=None, ref_labels=None):
        return dense_smooth_ap(embeddings, labels, ref_emb, ref_labels, tau=self.tau)


class OwnGraph:
    """An autograd function that works its gradient out in the forward pass; float32 only."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, embeddings, labels):
            if embeddings.dtype != torch.float32:
                raise TypeError("float32 only")
            with torch.enable_grad():
                leaf = embeddings.detach().requires_grad_()
                value = dense_smooth_ap(leaf, labels)
                (gradient,) = torch.autograd.grad(value, leaf)
            ctx.save_for_backward(gradient)
            return value.detach()

        @staticmethod
        def backward(ctx, upstream):
            return upstream * ctx.saved_tensors[0], None

    def __call__(self, embeddings, labels):
        return self.Step.apply(embeddings, labels)


def equal_classes_only(embeddings, labels):
    if len(labels.unique(return_counts=True)[1].unique()) > 1:
        raise ValueError("all classes must have the same number of images")
    return dense_smooth_ap(embeddings, labels)


def gathered(embeddings, labels):
    """Each process has the loss of the whole batch, and the gradient of its sum."""
    if not dist.is_initialized():
        return dense_smooth_ap(embeddings, labels)
    from torch.distributed.nn.functional import all_gather

    names = [torch.empty_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(names, labels)
    return dense_smooth_ap(torch.cat(all_gather(embeddings)), torch.cat(names))
