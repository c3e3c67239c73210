"""Losses other than SmoothAP, each with one planted fault; the names say which."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from benchmark.losses import create_loss
from benchmark.losses.conformance import formulas

SUP_AP = SimpleNamespace(tau=0.01, rho=100.0, delta=0.05, offset=None, start=0.5)


def mean_over_queries(embeddings, labels, formula):
    """Return the mean of formula(scores, positives) over the queries that have a positive."""
    scores = embeddings @ embeddings.T
    targets = labels.unsqueeze(1) == labels
    rows = [q for q in range(len(labels)) if targets[q].sum() > 1]
    return torch.stack([formula(scores[q], targets[q]) for q in rows]).mean()


sup_ap_without_the_half_step = create_loss("sup_ap", start=0.0)
sup_ap_with_a_jump_at_the_margin = create_loss("sup_ap", offset=1.44)


def sup_ap_with_ties_won(embeddings, labels):
    def formula(scores, positive):
        return formulas.sup_ap(scores + 1e-9 * (positive.double() - 0.5), positive, SUP_AP, 1)

    return mean_over_queries(embeddings.double(), labels, formula)


def sup_ap_with_soft_positive_ranks(embeddings, labels):
    def formula(scores, positive):
        loss = formulas.sup_ap(scores, positive, SUP_AP, 1)
        soft = formulas.smooth_ap(scores, positive, SUP_AP, 1)
        return loss + soft - soft.detach()

    return mean_over_queries(embeddings, labels, formula)


fast_ap_with_the_query_in_its_histogram = create_loss("softbin_ap", bins=11)


def fast_ap_of_distances(embeddings, labels):
    distances = (2 - 2 * embeddings @ embeddings.T).clamp(min=1e-9).sqrt()

    def formula(q):
        others = torch.arange(len(labels)) != q
        config = SimpleNamespace(bins=10)
        return formulas.fast_ap(1 - distances[q, others], (labels == labels[q])[others], config, 1)

    return torch.stack(
        [formula(q) for q in range(len(labels)) if (labels == labels[q]).sum() > 1]
    ).mean()


softbin_ap_with_precision_in_the_middle = create_loss("softbin_ap", ties="aware")
softbin_ap_with_classes_weighing_the_same = create_loss("softbin_ap", query_weights="class")

blackbox_ap_with_another_step = create_loss("blackbox_ap", margin=0.0, lambda_val=1.0)


def blackbox_ap_uphill(embeddings, labels):
    value = create_loss("blackbox_ap", margin=0.0)(embeddings, labels)
    return 2 * value.detach() - value


def blackbox_ap_with_ties_in_order(embeddings, labels):
    shift = 1e-9 * torch.arange(len(labels))
    scores = embeddings.double() @ embeddings.double().T - shift
    return (
        create_loss("blackbox_ap", margin=0.0)
        .query_losses(scores, labels.unsqueeze(1) == labels, self_pairs=True)
        .nanmean()
    )


roadmap_with_sums = create_loss("roadmap", weights=[1.0, 1.0])
