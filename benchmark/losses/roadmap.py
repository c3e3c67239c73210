"""ROADMAP: SupAP, an upper bound of 1 - AP, and the calibration of pairs."""

from dataclasses import fields

import torch

from benchmark.core.errors import ConfigError
from benchmark.losses import implements
from benchmark.losses.base import Composite, ScoreLoss
from benchmark.losses.kernels.relation import HIDDEN
from benchmark.losses.rank_losses import SupAP


@implements("calibration")
class Calibration(ScoreLoss):
    """Hinges that push positive scores above ``alpha`` and negative ones below ``beta``.

    ROADMAP, Eq. 7. ``pairs``: for each query the mean of [alpha - s]+ over its positives plus that
    of [s - beta]+ over its negatives, averaged over the queries that have a positive. ``nonzero``,
    what the authors ran: the mean over the positive pairs of the batch that are not 0, plus the
    same for the negative pairs (a contrastive loss on cosines). A query is never paired with
    itself. Time and memory O(Q x R).
    """

    cosine = True

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.needs_totals = config.reduction == "nonzero"

    def totals(self, scores, relation):
        """Return the numbers of positive and of negative pairs that are not 0."""
        over = scores > self.config.beta
        if relation.own:
            over.diagonal(relation.diagonal).fill_(False)
        positive_count = scores.new_zeros(())
        for group in relation.groups:
            positives = scores[group.queries].gather(1, group.columns)
            positive_count = positive_count + (positives < self.config.alpha).sum()
            over[group.queries] = over[group.queries].scatter_(1, group.columns, False)
        return torch.stack([positive_count, over.sum().to(scores.dtype)])

    def on_scores(self, scores, relation, gradient, generator):
        per_pair = not self.needs_totals
        excess = scores - self.config.beta
        if relation.own:
            excess.diagonal(relation.diagonal).fill_(HIDDEN)
        # of a query's negative pairs in the loss with "pairs"; 0 for queries without a positive
        weight = scores.new_zeros(relation.queries)
        slopes = []
        positive_loss = scores.new_zeros(())
        for group in relation.groups:
            queries = group.queries
            columns = group.columns
            size = columns.shape[1]
            divisor = size * relation.valid if per_pair else 1
            lack = (self.config.alpha - scores[queries].gather(1, columns)).relu_()
            positive_loss = positive_loss + lack.sum() / divisor
            negatives = relation.references - size - relation.own
            weight[queries] = 1.0 / (max(1, negatives) * relation.valid)
            excess[queries] = excess[queries].scatter_(1, columns, HIDDEN)
            slopes.append((queries, columns, lack.gt_(0.0).mul_(-1.0 / divisor)))
        negative_sums = excess.relu_().sum(1)
        over = excess.gt_(0.0)
        if per_pair:
            value = positive_loss + (negative_sums * weight).sum()
            positive_step = torch.ones_like(value)
            negative_step = weight.unsqueeze(1)
        else:
            counts = relation.totals
            if counts is None:
                counts = self.totals(scores, relation)
            positive_step, negative_step = counts.clamp(min=1).reciprocal()
            value = positive_loss * positive_step + negative_sums.sum() * negative_step
        if not gradient:
            return value, None
        derivative = over.mul_(negative_step)
        for queries, columns, slope in slopes:
            derivative[queries] = derivative[queries].scatter_(1, columns, slope * positive_step)
        return value, derivative


@implements("roadmap")
class Roadmap(Composite):
    """(1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    ``weights`` replaces (1 - lambda, lambda), for example [1, 1] as in the authors' configurations.
    The other hyperparameters are those of the two components.
    """

    def composition(self):
        weights = self.config.weights
        values = vars(self.config)
        if weights is None:
            weights = [1.0 - self.config.lambda_, self.config.lambda_]
        if len(weights) != 2:
            problem = f"weights  {weights} (allowed: two numbers, of SupAP and of calibration)"
            raise ConfigError("loss 'roadmap'", [problem])
        parts = (("sup_ap", SupAP.Config), ("calibration", Calibration.Config))
        composition = []
        for weight, (name, config) in zip(weights, parts, strict=True):
            params = {field.name: values[field.name] for field in fields(config)}
            composition.append((weight, name, params))
        return composition
