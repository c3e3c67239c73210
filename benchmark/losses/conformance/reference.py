"""The answer that the formula of a loss gives to a batch, and how far another may be from it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.losses import create_loss
from benchmark.losses.conformance import formulas
from benchmark.losses.conformance.cases import Case

PER_QUERY = {
    name: function
    for name, function in inspect.getmembers(formulas, inspect.isfunction)
    if not name.startswith("_")
}
NAMES = sorted([*PER_QUERY, "roadmap"])
BFLOAT16, FLOAT32, FLOAT64 = torch.bfloat16, torch.float32, torch.float64
# What rounding does to a score, and to everything after it: the reference is evaluated with scores
# disturbed by so much, and so many times the change that this makes is allowed, beside so much of
# the value and such a share of the gradient.
PRECISION = {
    BFLOAT16: (4e-3, 4.0, 0.02, math.inf),
    FLOAT32: (3e-7, 10.0, 2e-6, 2e-5),
    FLOAT64: (1e-15, 10.0, 1e-9, 1e-8),
}
SEEDS = range(1, 5)
DRAWS = 50  # of a random loss, whose means are compared
STANDARD_ERRORS = 6.0


@dataclass(frozen=True)
class Answer:
    """A value and its gradient (B, D) with respect to embeddings before they are normalised.

    What lies along an embedding, which no normalising network sees, does not count there.
    """

    value: float
    gradient: Tensor | None


@dataclass(frozen=True)
class Mismatch:
    """What is wrong in words, and how many times what is allowed."""

    text: str
    times: float = math.inf


@dataclass(frozen=True, eq=False)
class Reference:
    """A registered loss with its options, written as a dense formula."""

    name: str
    options: Mapping[str, Any]
    config: Any

    def drawn(self, dtype: torch.dtype) -> bool:
        """Whether an answer is the mean of many draws; of autocast one draw is enough."""
        random = getattr(self.config, "margin", 0.0) and not self.config.fixed_margin
        return bool(random) and dtype != BFLOAT16

    def answer(
        self, case: Case, noise: float = 0.0, seed: int = 0, *, gradient: bool = True
    ) -> Answer:
        """Return the answer to a batch with scores disturbed by ``noise`` x normal.

        The value is NaN when no query has a positive; gradients take most of the time.
        """
        free = case.embeddings.clone().requires_grad_(gradient)
        queries = pool = normalize(free, dim=1)
        pool_labels = case.labels
        if case.references is not None and case.reference_labels is not None:
            pool, pool_labels = normalize(case.references, dim=1), case.reference_labels
        scores = queries @ pool.T
        normal = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed))
        scores = scores + noise * normal.double()
        positives = case.labels.unsqueeze(1) == pool_labels
        ranked = torch.ones_like(positives)
        if case.references is None:
            ranked.fill_diagonal_(False)
        formula = _roadmap if self.name == "roadmap" else partial(_mean, PER_QUERY[self.name])
        value = formula(self.config, scores, positives, ranked)
        if not gradient or not value.isfinite():
            return Answer(float(value), None)
        return Answer(value.item(), *torch.autograd.grad(value + 0.0 * free.sum(), free))


@dataclass(frozen=True, eq=False)
class Expected:
    """The reference's answer to a batch, and how far another answer in ``dtype`` may be from it."""

    reference: Reference
    case: Case
    dtype: torch.dtype

    @cached_property
    def answer(self) -> Answer:
        """The answer, the mean of many draws where the loss is random."""
        random = self.reference.drawn(self.dtype)
        return mean(self.draws) if random else self.reference.answer(self.case)

    @cached_property
    def draws(self) -> list[Answer]:
        """Many answers of a random loss."""
        return draws(partial(self.reference.answer, self.case))

    def floor(self, part: str) -> float:
        """Return what a "value" or "gradient" may be off without a look at the noise."""
        gradient, (*_, of_value, of_gradient) = self.answer.gradient, PRECISION[self.dtype]
        if part == "value" or gradient is None:
            return of_value
        return of_gradient * max(0.3, float(gradient.abs().max()))

    def differing(
        self, part: str, found: Any, wanted: Any = None, times: float = 1.0
    ) -> Mismatch | None:
        """Return how far a "value" or "gradient" is from the one here, or ``wanted``.

        None within ``times`` what is allowed; None too where no gradient is expected.
        """
        wanted = getattr(self.answer, part) if wanted is None else wanted
        if wanted is None:
            return None
        off = torch.as_tensor((0.0 if found is None else found) - wanted, dtype=FLOAT64).abs()
        largest, floor = float(off.max()), self.floor(part)
        if largest <= times * floor or largest <= (limit := times * (floor + noise(self, part))):
            return None
        if found is None:
            text = "no gradient reaches the embeddings"
        elif part == "value":
            text = f"value {found:.7g}, expected {wanted:.7g} (+-{limit:.1g})"
        else:
            row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), wanted.shape[1])
            text = (
                f"gradient of row {row}, column {column} is {found[row, column]:.7g}, expected "
                f"{wanted[row, column]:.7g} (+-{limit:.1g})"
            )
            if float(wanted.abs().max()) > limit:
                share = float((found * wanted).sum() / wanted.square().sum())
                text += f"; along the expected gradient it is {share:.4g} of it"
        return Mismatch(text, largest / limit)


expected = cache(Expected)  # one for each reference and batch, whichever candidate is held to it


@cache
def noise(right: Expected, part: str) -> float:
    """Return what rounding may change of the value or the gradient."""
    drawn, of_gradient = right.reference.drawn(right.dtype), part == "gradient"
    exact = right.case.exact and not of_gradient  # scores that are not rounded
    if not drawn and (exact or not math.isfinite(right.answer.value)):
        return 0.0
    disturbance, margin, *_ = PRECISION[right.dtype]
    answer = partial(right.reference.answer, right.case, disturbance, gradient=of_gradient)
    answers = right.draws if drawn else [answer(seed=seed) for seed in SEEDS]
    parts = torch.stack([torch.as_tensor(getattr(a, part), dtype=FLOAT64) for a in answers])
    if drawn:
        return STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5 * float(parts.std(0).max())
    return margin * float((parts - getattr(right.answer, part)).abs().max())


def draws(draw: Callable[[], Answer]) -> list[Answer]:
    """Return many answers of a random loss."""
    torch.default_generator.manual_seed(0)
    return [draw() for _ in range(DRAWS)]


def mean(answers: list[Answer]) -> Answer:
    """Return the mean of answers, without a gradient if one has none."""
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    complete = len(gradients) == len(answers)
    value = fmean(answer.value for answer in answers)
    return Answer(value, torch.stack(gradients).mean(0) if complete else None)


def reference(name: str, options: Mapping[str, Any]) -> Reference:
    """Return the reference of the loss registered as ``name``, with its hyperparameters.

    Raises ConfigError for a name without a formula, or naming every wrong hyperparameter.
    """
    if name not in NAMES:
        raise ConfigError("--as", [unknown_name("reference", name, NAMES)])
    config = create_loss(name, **options).config  # it may refuse more than its Config says
    if getattr(config, "simix", False):
        raise ConfigError("--option", ["simix  makes images of its own (allowed here: false)"])
    return Reference(name, options, config)


def _mean(
    formula: Callable, config: Any, scores: Tensor, positives: Tensor, ranked: Tensor
) -> Tensor:
    """Return the mean of a formula over the queries that have a positive besides themselves.

    Takes scores (Q, R), which references are positives (Q, R), which are ranked at all (Q, R).
    """
    queries = (positives & ranked).any(1).nonzero().flatten().tolist()
    if not queries:
        return scores.sum() * torch.nan
    if getattr(config, "include_query", False):
        if formula is formulas.recall_at_k:  # its query is ranked and no positive
            positives = positives & ranked
        ranked = torch.ones_like(ranked)
    losses = []
    for query in queries:
        items = ranked[query]
        shown = scores[query, items], positives[query, items]
        losses.append(formula(*shown, config, len(queries)))
    values = torch.stack(losses)
    if getattr(config, "query_weights", "uniform") == "uniform":
        return values.mean()
    # queries of one class have the same row of positives
    group = torch.unique(positives[queries], dim=0, return_inverse=True)[1]
    return torch.stack([values[group == number].mean() for number in group.unique()]).mean()


def _roadmap(config: Any, scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
    """Return (1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    The calibration (Eq. 7) is a mean by query, or over pairs that are not 0.
    """
    of_sup_ap, of_calibration = config.weights or [1.0 - config.lambda_, config.lambda_]
    near, far = positives & ranked, ~positives
    lack = (config.alpha - scores).clamp(min=0.0) * near
    excess = (scores - config.beta).clamp(min=0.0) * far
    if config.reduction == "nonzero":
        means = [part.sum() / max(1, int((part > 0).sum())) for part in (lack, excess)]
        calibration = means[0] + means[1]
    else:
        per_query = lack.sum(1) / near.sum(1).clamp(min=1)
        per_query = per_query + excess.sum(1) / far.sum(1).clamp(min=1)
        calibration = per_query[near.any(1)].mean()
    sup_ap = _mean(formulas.sup_ap, config, scores, positives, ranked)
    return of_sup_ap * sup_ap + of_calibration * calibration
