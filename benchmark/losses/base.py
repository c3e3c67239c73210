"""The interfaces of losses: of embeddings, of scores, of the ranking of each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from benchmark.core.errors import RunError
from benchmark.core.recipe import UNTRAINED
from benchmark.losses import create_loss, implements
from benchmark.losses.configs import NoConfig, RankingConfig
from benchmark.losses.kernels.fused import OfEmbeddings, row_tiles, widened
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.relation import Positives, Relation

# A value and its derivative with respect to scores (Q, R), None where no gradient is asked for.
ValueAndSlope = tuple[Tensor, Tensor | None]


class Loss(nn.Module):
    """A training objective on embeddings; subclasses define ``Config`` and ``forward``."""

    # Whether training hands over labels on the CPU, where they are made, instead of on the
    # embeddings' device. A loss that reads labels first would wait there for all earlier work.
    labels_on_cpu = False
    # Whether labels may have a column for each level of relevance, (B, L), the finest first.
    hierarchical = False
    # Images of a group, where the loss of a batch is the mean over groups of consecutive images.
    # Micro-batches of whole groups then go through the network once instead of twice.
    group: int | None = None
    Config: type = NoConfig

    def __init__(self, config: Any, **sizes: Any):
        """Take hyperparameters, and embedding_dim, num_classes and seed for proxies."""
        super().__init__()
        self.config = config

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        reference_embeddings: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return the loss (scalar) of L2-normalised embeddings (B, D) with integer labels (B,).

        With references (M, D) and (M,) the batch queries the references, else itself. Random
        numbers come from ``generator``, or from torch's own generator. Non-finite embeddings give a
        non-finite loss. Wrong shapes and an empty batch raise RunError. If the loss has proxies, a
        label outside of 0 to num_classes - 1 does, too.
        """
        raise NotImplementedError

    def with_memory(
        self,
        embeddings: Tensor,
        labels: Tensor,
        memory: Tensor,
        memory_labels: Tensor,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return the loss of a batch (B, D) that queries itself and a memory of others (M, D).

        An empty memory gives the plain loss. Here batch and memory become the references, so each
        query is one of its own references. Losses that treat this entry apart override the method.
        """
        references = torch.cat([embeddings, memory.to(embeddings.dtype)])
        reference_labels = torch.cat([labels, memory_labels.to(labels.device, non_blocking=True)])
        return self(embeddings, labels, references, reference_labels, generator=generator)


@implements(UNTRAINED)
class Untrained(Loss):
    """The loss of runs without training (``training.epochs: 0``)."""

    def forward(self, *batch, **options):
        raise RunError(f"'{UNTRAINED}' is not a loss to train with; set training.epochs to 0")


class ComparingLoss(Loss):
    """A loss that treats a batch and other references apart; subclasses define ``compare``."""

    labels_on_cpu = True
    # Labels are below this number if the loss has a proxy for each class.
    num_classes: int | None = None
    _looked_at = False

    def compare(
        self,
        embeddings: Tensor,
        labels: Tensor,
        others: Tensor | None,
        other_labels: Tensor | None,
        own: bool,
        generator: Generator | None,
    ) -> Tensor:
        """Return the loss of a batch. Its references are itself (``own``), then the others.

        Labels are int64, and autocast is off.
        """
        raise NotImplementedError

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        own = reference_embeddings is None
        given = (embeddings, labels, reference_embeddings, reference_labels)
        return self._compare_checked(*given, own, generator)

    def with_memory(self, embeddings, labels, memory, memory_labels, *, generator=None):
        return self._compare_checked(embeddings, labels, memory, memory_labels, True, generator)

    def _compare_checked(self, embeddings, labels, others, other_labels, own, generator):
        labels, other_labels = self._checked(embeddings, labels, others, other_labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            return self.compare(embeddings, labels, others, other_labels, own, generator)

    def _checked(self, embeddings, labels, references, reference_labels):
        """Return the labels of the batch and of the references as int64."""
        columns: Any = ()
        if self.hierarchical:
            columns = getattr(labels, "shape", ())[1:2]
        for rows, numbers in ((embeddings, labels), (references, reference_labels)):
            if rows is None and numbers is None:
                continue
            if (
                not isinstance(rows, Tensor)
                or not isinstance(numbers, Tensor)
                or rows.shape != (len(numbers), embeddings.shape[-1])
                or numbers.shape != (len(rows), *columns)
                or numbers.is_floating_point()
            ):
                shapes = [
                    tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
                    for given in (rows, numbers)
                ]
                raise RunError(
                    f"got rows and labels of shapes {shapes}; a loss takes embeddings (B, D) with "
                    "integer labels (B,), and references (M, D) with labels (M,), all as tensors"
                )
        if not len(labels):
            raise RunError("got an empty batch; the loss of no image is undefined")
        labels = labels.long()
        # Labels on a GPU are checked once: each step would wait for them.
        if self.num_classes is not None and (labels.device.type == "cpu" or not self._looked_at):
            self._looked_at = True
            wrong = labels[(labels < 0) | (labels >= self.num_classes)]
            if len(wrong):
                raise RunError(
                    f"got label {wrong[0]}, but num_classes is {self.num_classes}: labels go from "
                    f"0 to {self.num_classes - 1}"
                )
        if reference_labels is not None:
            reference_labels = reference_labels.long()
        return labels, reference_labels


class ScoreLoss(ComparingLoss):
    """A loss of the scores of queries and references; subclasses define ``on_scores``.

    Scores and everything after them are computed in float32 (float64 for float64 embeddings)
    whatever autocast says. ``cosine`` says whether scores are divided by the lengths of the rows
    first, as the published code of a loss may do. On L2-normalised rows only the gradient along the
    row itself differs, which a normalising network never sees.
    """

    cosine = False
    # Rows of scores that are held at once; None: all of them up to DENSE_ENTRIES scores
    # (``benchmark.losses.kernels.fused``), beyond that as many as have TILE_ENTRIES.
    rows_per_tile: int | None = None
    # Whether the derivative of a row depends on ``totals`` of all rows.
    needs_totals = False

    def totals(self, scores: Tensor, relation: Relation) -> Tensor:
        """Return these rows' part of ``relation.totals``, which ``on_scores`` needs of all rows."""
        raise NotImplementedError

    def on_scores(
        self, scores: Tensor, relation: Relation, gradient: bool, generator: Generator | None
    ) -> ValueAndSlope:
        """Return the loss of scores (Q, R) and its derivative, without autograd.

        If the rows are some of a batch, return their share of the loss of the whole batch.
        """
        raise NotImplementedError

    def components(self) -> Sequence[tuple[float, ScoreLoss]]:
        """Return the weights and losses of a composite; of another loss the loss itself."""
        return [(1.0, self)]

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        positives = Positives.from_labels(labels, other_labels, embeddings.device, own=own)
        positives.require_positives()
        tiles = row_tiles(len(labels), len(positives.order), self.rows_per_tile)
        return OfEmbeddings.apply(
            embeddings, others, self.components(), positives, tiles, generator
        )


class RankingLoss(ScoreLoss):
    """The mean over queries of a loss of each query's ranking, such as 1 - AP.

    Subclasses define ``per_query``, which autograd differentiates, or ``rank``, which returns its
    own derivative. Queries without a positive are left out of the mean. If the images of a batch
    are queries against the same batch, an image does not count as its own positive here: a query
    whose class occurs only once is left out.
    """

    Config = RankingConfig

    def per_query(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return 1 - AP (Q,) of scores (Q, R) and targets (Q, R), which are True for positives.

        A value depends on its own row only, and each row has a positive. The base class handles the
        query's own entry, references, a memory, precision, mean and gradient.
        """
        raise NotImplementedError

    def rank(
        self,
        scores: Tensor,
        relation: Relation,
        scale: float,
        gradient: bool,
        generator: Generator | None,
    ) -> ValueAndSlope:
        """Return 1 - AP of each query (Q,) and the derivative (Q, R) of ``scale`` x the sum.

        Both are 0 for a query without a positive. Autograd is off.
        """
        include = self.config.include_query
        queries = torch.cat([group.queries for group in relation.groups])
        targets = relation.targets(include)[queries]
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_(gradient)
            rows = leaf[queries]
            if relation.own and not include:  # without the query's own entry
                columns = torch.arange(relation.references - 1, device=scores.device)
                others = columns + (columns >= queries.unsqueeze(1) + relation.diagonal)
                rows = rows.gather(1, others)
                targets = targets.gather(1, others)
            losses = self.per_query(rows, targets)
            slope = torch.autograd.grad(losses.sum() * scale, leaf)[0] if gradient else None
        # comparisons hide NaN; a NaN anywhere in a row must show in its value
        values = scores.sum(1) * 0.0
        values[queries] += losses.detach()
        return values, slope

    def on_scores(self, scores, relation, gradient, generator):
        if not relation.groups:  # some rows of a batch, none with a positive
            return scores.new_zeros(()), torch.zeros_like(scores) if gradient else None
        scale = 1.0 / relation.valid
        values, slope = self.rank(scores, relation, scale, gradient, generator)
        return values.sum() * scale, slope

    def query_losses(
        self,
        scores: Tensor,
        targets: Tensor,
        *,
        self_pairs: bool = False,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return 1 - AP (Q,) of scores (Q, R) and boolean targets (Q, R); NaN without a positive.

        ``self_pairs``: entry (i, i) is the query itself, which the loss counts or leaves out by its
        own rule. Otherwise every entry is an ordinary reference. Autograd can differentiate the
        result.
        """
        relation = Relation.from_targets(targets, self_pairs, scores.device)
        with torch.no_grad(), torch.autocast(scores.device.type, enabled=False):
            full = widened(scores.detach())
            gradient = scores.requires_grad
            values, slope = self.rank(full, relation, 1.0, gradient, generator)
            valid = torch.zeros_like(values, dtype=torch.bool)
            for group in relation.groups:
                valid[group.queries] = True
        if slope is not None:  # adds 0 to the value, and the slope to its derivative
            values = values + ((scores - scores.detach()) * slope).sum(1)
        return torch.where(valid, values, torch.nan)


class SoftRankLoss(RankingLoss):
    """A ranking loss on the fast kernels: how ranks are counted, and what is made of them."""

    def soft_ranks(self) -> SoftRanks:
        """Return how ranks are counted and what is made of them, from ``self.config``."""
        raise NotImplementedError

    def rank(self, scores, relation, scale, gradient, generator):
        include = self.config.include_query
        return self.soft_ranks().losses(scores, relation, scale, include, gradient)


class Composite(ScoreLoss):
    """Sum of weighted score losses on one score matrix; subclasses define ``composition``."""

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.weights = [weight for weight, *_ in self.composition()]
        self.losses: Any = nn.ModuleList(
            create_loss(name, **sizes, **setting) for _, name, setting in self.composition()
        )
        self.hierarchical = any(loss.hierarchical for loss in self.losses)

    def composition(self) -> list[tuple[float, str, dict]]:
        """Return weight, registered name and hyperparameters of each component."""
        raise NotImplementedError

    def query_losses(self, scores, targets, *, self_pairs=False, generator=None):
        """Return 1 - AP (Q,) of the ranking loss among the components; see ``RankingLoss``."""
        ranking = next(loss for _, loss in self.components() if isinstance(loss, RankingLoss))
        return ranking.query_losses(scores, targets, self_pairs=self_pairs, generator=generator)

    def components(self):
        return [
            (weight * inner, component)
            for weight, loss in zip(self.weights, self.losses, strict=True)
            for inner, component in loss.components()
        ]
