"""Compare any implementation of a ranking loss with the formula of that loss.

``formulas`` has the right answers, ``suite`` the batches and the checks; ``python -m benchmark
conform`` runs them. Here is the average precision of a library that takes other arguments.
"""

import torch
from torch import Tensor


def libauc_average_precision(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over queries of LibAUC's APLoss, without its moving average (gamma = 1).

    It is taken over queries with a positive; a query is its own positive too.
    """
    from libauc.losses import APLoss

    rows, positives = torch.arange(len(labels)), labels.unsqueeze(1) == labels
    pairs = zip(embeddings @ embeddings.T, positives.to(embeddings), strict=True)
    losses = [APLoss(len(rows), gamma=1.0)(*pair, rows) for pair in pairs if pair[1].sum() > 1]
    return torch.stack(losses).mean()
