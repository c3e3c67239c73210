"""Average precisions of other libraries as callables of (embeddings, labels).

The libraries are not dependencies of this suite: install one to hold it against a formula.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def torchmetrics_average_precision(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over queries of 1 - the retrieval AP of torchmetrics; it has no gradient."""
    from torchmetrics.functional.retrieval import retrieval_average_precision

    return _mean_of_queries(
        embeddings,
        labels,
        lambda scores, positive: 1 - retrieval_average_precision(scores, positive),
    )


def libauc_average_precision(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over queries of LibAUC's APLoss, without its moving average (gamma = 1)."""
    from libauc.losses import APLoss

    def of_query(scores: Tensor, positive: Tensor) -> Tensor:
        loss = APLoss(data_len=len(scores), gamma=1.0)
        return loss(scores, positive.to(scores.dtype), torch.arange(len(scores)))

    return _mean_of_queries(embeddings, labels, of_query)


def _mean_of_queries(
    embeddings: Tensor, labels: Tensor, of_query: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return the mean over the queries that have a positive; a query is its own positive too."""
    scores = embeddings @ embeddings.T
    positives = labels.unsqueeze(1) == labels
    queries = (positives.sum(1) > 1).nonzero().flatten().tolist()
    return torch.stack([of_query(scores[query], positives[query]) for query in queries]).mean()
