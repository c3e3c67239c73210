"""Hold any implementation of a ranking loss against the formula of that loss.

``formulas`` has the right answers, ``checks`` the batches and what is examined; ``python -m
benchmark conform`` runs them. Here are average precisions of other libraries as callables of
(embeddings, labels): install one to hold it against a formula.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def torchmetrics_average_precision(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over queries of 1 - the retrieval AP of torchmetrics; it has no gradient."""
    from torchmetrics.functional.retrieval import retrieval_average_precision

    return 1 - _mean_of_queries(embeddings, labels, retrieval_average_precision)


def libauc_average_precision(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over queries of LibAUC's APLoss, without its moving average (gamma = 1)."""
    from libauc.losses import APLoss

    rows = torch.arange(len(labels))
    return _mean_of_queries(
        embeddings,
        labels,
        lambda scores, positive: APLoss(len(rows), gamma=1.0)(scores, positive.to(scores), rows),
    )


def _mean_of_queries(
    embeddings: Tensor, labels: Tensor, of_query: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return the mean over the queries that have a positive; a query is its own positive too."""
    positives = labels.unsqueeze(1) == labels
    pairs = zip(embeddings @ embeddings.T, positives, strict=True)
    return torch.stack([of_query(*pair) for pair in pairs if pair[1].sum() > 1]).mean()
