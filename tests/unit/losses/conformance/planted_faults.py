"""SmoothAP and other losses, each with one planted fault; the names say which."""

from __future__ import annotations

import functools

import torch
import torch.distributed as dist
from right_losses import dense_smooth_ap, masks, scores_of
from torch.nn.functional import normalize


def copy(fault, **changes):
    """Return dense SmoothAP with ``changes``, under the name of its fault."""
    loss = functools.partial(dense_smooth_ap, **changes)
    loss.__name__ = fault
    return loss


ascending_ranks = copy("ascending_ranks", direction=-1.0)
precision_instead_of_loss = copy("precision_instead_of_loss", finish=lambda value: 1 - value)
rank_from_zero = copy("rank_from_zero", first=0.0)
itself_not_counted = copy("itself_not_counted", first=0.0, include_query=False, singles=True)
self_counted_twice = copy("self_counted_twice", self_step=1.0)
temperature_multiplied = copy("temperature_multiplied", tau=100.0)
query_left_out = copy("query_left_out", include_query=False)
sum_over_queries = copy("sum_over_queries", reduce=torch.sum)
all_images_in_the_mean = copy("all_images_in_the_mean", singles=True)
half_gradient = copy("half_gradient", scores=lambda e: e @ e.detach().T)
no_gradient = copy("no_gradient", scores=lambda e: scores_of(e.detach()))
scores_in_half_precision = copy("scores_in_half_precision", scores=lambda e: scores_of(e).half())
distance_without_a_gradient_at_zero = copy(
    "distance_without_a_gradient_at_zero",
    scores=lambda e: 1 - (e.unsqueeze(0) - e.unsqueeze(1)).square().sum(2).sqrt().square() / 2,
)
noisy_scores = copy("noisy_scores", scores=lambda e: scores_of(e) + 1e-3 * torch.rand(1, len(e)))
gradient_of_ranks_stopped = copy("gradient_of_ranks_stopped", stop_rank=True)
divided_by_the_batch = copy(
    "divided_by_the_batch", per_query=lambda ap, targets: ap.sum(1) / len(ap)
)


def classes_by_position(embeddings, labels):
    size = int((labels == labels[0]).sum())
    return dense_smooth_ap(embeddings, torch.arange(len(labels)) // size)


def wrong_beyond_a_block(embeddings, labels):
    return dense_smooth_ap(embeddings[:64], labels[:64])


def classes_weigh_the_same(embeddings, labels):
    names = labels.unique()
    return dense_smooth_ap(
        embeddings,
        labels,
        reduce=lambda v: sum(v[labels == name].mean() for name in names) / len(names),
        singles=True,
    )


def embeddings_overwritten(embeddings, labels):
    value = dense_smooth_ap(embeddings, labels)
    embeddings.data.mul_(2.0)
    return value


class FactorIgnored(torch.nn.Module):
    """Its backward pass does not look at the gradient that comes in."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, embeddings, labels):
            with torch.enable_grad():
                leaf = embeddings.detach().requires_grad_()
                value = dense_smooth_ap(leaf, labels)
                ctx.save_for_backward(*torch.autograd.grad(value, leaf))
            return value.detach()

        @staticmethod
        def backward(ctx, upstream):
            return ctx.saved_tensors[0], None

    def forward(self, embeddings, labels):
        return self.Step.apply(embeddings, labels)


class GradientOfTheLastCall(torch.nn.Module):
    """It keeps its gradient on the class, where the next call overwrites it."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, embeddings, labels):
            with torch.enable_grad():
                leaf = embeddings.detach().requires_grad_()
                value = dense_smooth_ap(leaf, labels)
            GradientOfTheLastCall.gradient = torch.autograd.grad(value, leaf)[0]
            ctx.shape = embeddings.shape
            return value.detach()

        @staticmethod
        def backward(ctx, upstream):
            return upstream * GradientOfTheLastCall.gradient.flatten()[: ctx.shape.numel()].view(
                ctx.shape
            ), None

    def forward(self, embeddings, labels):
        return self.Step.apply(embeddings, labels)


class MaskOfTheFirstBatch(torch.nn.Module):
    """It keeps the positives of the first batch of each size."""

    def __init__(self):
        super().__init__()
        self.labels = {}

    def forward(self, embeddings, labels):
        return dense_smooth_ap(embeddings, self.labels.setdefault(len(labels), labels))


class EverySecondCall(torch.nn.Module):
    """It changes from call to call."""

    calls = 0

    def forward(self, embeddings, labels):
        self.calls += 1
        return dense_smooth_ap(embeddings, labels) * (1 + 1e-5 * (self.calls % 7))


class EveryGraphKept(torch.nn.Module):
    """It keeps the values of every call, with their graphs."""

    def __init__(self):
        super().__init__()
        self.log = []

    def forward(self, embeddings, labels):
        _, targets = masks(labels, embeddings.dtype)
        steps = (scores_of(embeddings).unsqueeze(1) * targets.unsqueeze(2)).clone()
        self.log.append(steps)
        return dense_smooth_ap(embeddings, labels)


def gradient_times_processes(embeddings, labels):
    value = dense_smooth_ap(embeddings, labels)
    if dist.is_initialized():
        value = value.detach() + dist.get_world_size() * (value - value.detach())
    return value


def gathered_without_gradient(embeddings, labels):
    if not dist.is_initialized():
        return dense_smooth_ap(embeddings, labels)
    parts = [torch.empty_like(embeddings) for _ in range(dist.get_world_size())]
    names = [torch.empty_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, embeddings.detach())
    dist.all_gather(names, labels)
    parts[dist.get_rank()] = embeddings
    return dense_smooth_ap(torch.cat(parts), torch.cat(names))


def gathered_in_the_wrong_order(embeddings, labels):
    if not dist.is_initialized():
        return dense_smooth_ap(embeddings, labels)
    from torch.distributed.nn.functional import all_gather

    names = [torch.empty_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(names, labels)
    return dense_smooth_ap(torch.cat(all_gather(embeddings)), torch.cat(names[::-1]).roll(1))


def own_entry_hidden_among_references(embeddings, labels, ref_emb=None, ref_labels=None):
    if ref_emb is None:
        return dense_smooth_ap(embeddings, labels)
    return dense_smooth_ap(embeddings, labels, ref_emb, ref_labels, hide_diagonal=True)


def normalised_by_the_batch(embeddings, labels):
    return dense_smooth_ap(normalize(embeddings - embeddings.mean(0), dim=1), labels)
