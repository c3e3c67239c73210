"""The interface of every loss, and the fused path of those that are functions of a score matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from benchmark.core.errors import RunError
from benchmark.losses.kernels.fused import OfEmbeddings, full_precision
from benchmark.losses.kernels.relation import Relation


class Loss(nn.Module):
    """A training objective on embeddings; subclasses define ``Config`` and ``forward``."""

    # Whether training hands labels over on the CPU, where they are made, instead of on the embeddings' device:
    # a loss that looks at labels alone first would wait there for everything that the device has yet to do.
    labels_on_cpu = False

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """No hyperparameters."""

    def __init__(
        self,
        config: Any,
        *,
        embedding_dim: int | None = None,
        num_classes: int | None = None,
        seed: int = 0,
    ):
        super().__init__()
        self.config = config

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference_embeddings: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Returns the loss (scalar) of embeddings (B, D), L2-normalised rows, with integer labels (B,).

        With references (M, D) and (M,) the batch queries the references, else itself. Non-finite
        embeddings give a non-finite loss; wrong shapes raise RunError. Training gives all labels on the
        device of the embeddings, unless the class says ``labels_on_cpu``.
        """
        raise NotImplementedError

    def with_memory(
        self,
        embeddings: Tensor,
        labels: Tensor,
        memory: Tensor,
        memory_labels: Tensor,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Returns the loss (scalar) of a batch (B, D) that queries itself and a memory (M, D) of other images.

        An empty memory gives the plain loss. Here the batch and the memory become the references, so that each
        query meets itself as one of them; losses that treat a query's own entry apart override this.
        """
        references = torch.cat([embeddings, memory.to(embeddings.dtype)])
        reference_labels = torch.cat([labels, memory_labels.to(labels.device, non_blocking=True)])
        return self(embeddings, labels, references, reference_labels, generator=generator)


class ScoreLoss(Loss):
    """A loss of the scores of queries and references, with its gradient worked out by hand.

    Subclasses implement ``on_scores``. Scores and everything after them are computed in float32 (float64
    for float64 embeddings) whatever autocast says. ``cosine`` says whether scores are divided by the
    lengths of the rows first, as the published code of that loss does; on L2-normalised rows only the
    gradient along the row itself differs, which a normalising network never sees.
    """

    cosine = False
    labels_on_cpu = True  # they become a Relation, which is made there

    def on_scores(
        self,
        scores: Tensor,
        relation: Relation,
        *,
        gradient: bool,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the loss of scores (Q, R) and, if ``gradient``, its derivative (Q, R); without autograd."""
        raise NotImplementedError

    def parts(self) -> list[tuple[float, ScoreLoss]]:
        """Returns weights and losses whose weighted sum this loss is: itself, unless it is a composite."""
        return [(1.0, self)]

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        check_inputs(embeddings, labels, reference_embeddings, reference_labels)
        relation = Relation.from_labels(labels, reference_labels, embeddings.device)
        relation.require_positives()
        return OfEmbeddings.apply(
            embeddings, reference_embeddings, self.parts(), relation, generator
        )

    def with_memory(self, embeddings, labels, memory, memory_labels, *, generator=None):
        check_inputs(embeddings, labels, memory, memory_labels)
        relation = Relation.with_memory(labels, memory_labels, embeddings.device)
        relation.require_positives()
        return OfEmbeddings.apply(embeddings, memory, self.parts(), relation, generator)


class RankingLoss(ScoreLoss):
    """A score loss that is a mean over queries of 1 - AP, in some relaxation.

    Subclasses implement ``rank``. Queries without a positive are left out of the mean. When the batch queries
    itself, a query does not count as a positive that could save it from being left out.
    """

    def rank(
        self,
        scores: Tensor,
        relation: Relation,
        scale: float,
        *,
        gradient: bool,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns 1 - AP of each query (Q,), 0 where it has no positive, and the derivative (Q, R) of
        ``scale`` times their sum. Runs without autograd."""
        raise NotImplementedError

    def on_scores(self, scores, relation, *, gradient, generator):
        scale = 1.0 / relation.valid
        values, derivative = self.rank(
            scores, relation, scale, gradient=gradient, generator=generator
        )
        return values.sum() * scale, derivative

    def per_query(
        self,
        scores: Tensor,
        targets: Tensor,
        *,
        self_pairs: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Returns 1 - AP (Q,) of scores (Q, R) with boolean targets (Q, R); NaN for a row without a positive.

        ``self_pairs``: entry (i, i) is the query itself, which the loss counts or leaves out by its own rule;
        otherwise every entry is an ordinary reference. Differentiable with respect to the scores.
        """
        if scores.ndim != 2 or scores.shape != targets.shape:
            raise RunError(
                f"per_query needs scores and targets of one shape (Q, R); got {tuple(scores.shape)} "
                f"and {tuple(targets.shape)}"
            )
        if self_pairs and scores.shape[0] != scores.shape[1]:
            raise RunError(f"self_pairs needs a square score matrix; got {tuple(scores.shape)}")
        relation = Relation.from_targets(targets, self_pairs, scores.device)
        return _PerQuery.apply(scores, self, relation, generator)


class _PerQuery(torch.autograd.Function):
    """1 - AP of each query; row q of the scores only reaches value q."""

    @staticmethod
    def forward(ctx, scores, loss, relation, generator):
        gradient = ctx.needs_input_grad[0]
        with torch.autocast(scores.device.type, enabled=False):
            values, derivative = loss.rank(
                full_precision(scores), relation, 1.0, gradient=gradient, generator=generator
            )
        ctx.save_for_backward(derivative)
        ctx.dtype = scores.dtype
        result = torch.full_like(values, float("nan"))
        for group in relation.groups:
            result[group.queries] = values[group.queries]
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        (derivative,) = ctx.saved_tensors
        # rows of queries without a positive hold zeros; their upstream may be NaN and must not leak
        rows = torch.where((derivative != 0).any(1), upstream, 0.0)
        return (derivative * rows.unsqueeze(1)).to(ctx.dtype), None, None, None


def check_inputs(
    embeddings: Tensor, labels: Tensor, references: Tensor | None, reference_labels: Tensor | None
) -> None:
    """Raises RunError for embeddings, labels and references whose shapes or types do not fit together."""
    if (references is None) != (reference_labels is None):
        raise RunError(
            "reference_embeddings and reference_labels belong together: pass both or neither"
        )
    _check_pair("embeddings", embeddings, labels)
    if references is not None:
        _check_pair("reference_embeddings", references, reference_labels)
        if references.shape[1] != embeddings.shape[1]:
            raise RunError(
                f"embeddings are {embeddings.shape[1]} wide, reference_embeddings {references.shape[1]}; "
                "both must come from the same network"
            )


def _check_pair(name: str, embeddings: Tensor, labels: Tensor) -> None:
    if embeddings.ndim != 2 or not embeddings.is_floating_point():
        raise RunError(
            f"{name} must be a floating-point tensor (B, D); got {embeddings.dtype} {tuple(embeddings.shape)}"
        )
    if labels.shape != embeddings.shape[:1] or labels.is_floating_point():
        raise RunError(
            f"{name} of shape {tuple(embeddings.shape)} need integer labels of shape "
            f"({embeddings.shape[0]},); got {labels.dtype} {tuple(labels.shape)}"
        )
