"""A candidate beside the formula of its loss: how far apart they may be, and whether they are."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.losses import create_loss
from benchmark.losses.conformance import formulas
from benchmark.losses.conformance.candidate import Answer, Candidate
from benchmark.losses.conformance.cases import Case

# Scores (Q, R), which references are positives (Q, R), which are ranked at all (Q, R) -> value.
OfScores = Callable[[Tensor, Tensor, Tensor], Tensor]
FUNCTIONS = inspect.getmembers(formulas, inspect.isfunction)
PER_QUERY = {name: function for name, function in FUNCTIONS if not name.startswith("_")}
# What rounding does to a score, and to everything after it: the reference is evaluated with scores
# disturbed by so much, and ten times the change that this makes is allowed.
NOISE = {torch.float32: 3e-7, torch.float64: 1e-15}
MARGIN = 10.0
FLOOR = {torch.float32: (2e-6, 2e-5), torch.float64: (1e-9, 1e-8)}  # value, share of the gradient
SEEDS = range(1, 5)
DRAWS = 50  # of a random loss, whose means are compared
STANDARD_ERRORS = 6.0


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
    of_scores: OfScores

    @property
    def random(self) -> bool:
        """Whether the value depends on random numbers."""
        return bool(getattr(self.config, "margin", 0.0)) and not self.config.fixed_margin

    def answer(
        self, case: Case, noise: float = 0.0, seed: int = 0, *, gradient: bool = True
    ) -> Answer:
        """Return the value of a batch with scores disturbed by ``noise`` x normal, and its gradient
        where that is asked for. The value is NaN when no query has a positive."""
        generator = torch.Generator().manual_seed(seed)
        free = case.embeddings.clone().requires_grad_(gradient)
        queries = normalize(free, dim=1)
        pool, pool_labels = queries, case.labels
        if case.references is not None and case.reference_labels is not None:
            pool, pool_labels = normalize(case.references, dim=1), case.reference_labels
        scores = queries @ pool.T
        scores = scores + noise * torch.randn(scores.shape, generator=generator).double()
        positives = case.labels.unsqueeze(1) == pool_labels
        ranked = torch.ones_like(positives)
        if case.references is None:
            ranked.fill_diagonal_(False)
        value = self.of_scores(scores, positives, ranked)
        if not gradient or not value.isfinite():
            return Answer(float(value), None)
        (found,) = torch.autograd.grad(value + 0.0 * free.sum(), free)
        return Answer(value.item(), found)


@dataclass(frozen=True, eq=False)
class Expected:
    """The reference's answer to a batch, and how far another answer in ``dtype`` may be from it.

    Each part is found out when it is first asked for: many batches are asked for values alone, and
    gradients take most of the time.
    """

    reference: Reference
    case: Case
    dtype: torch.dtype

    @cached_property
    def value(self) -> float:
        """The value, the mean of many draws where the loss is random."""
        return self.answer(gradient=False).value

    @cached_property
    def gradient(self) -> Tensor | None:
        """The gradient (B, D), None where the value is not finite."""
        return self.answer(gradient=True).gradient

    def answer(self, *, gradient: bool, seed: int = 0) -> Answer:
        """Return the reference's answer, with noise for a seed other than 0."""
        if self.reference.random:
            return self.drawn[0]
        noise = NOISE[self.dtype] if seed else 0.0
        return self.reference.answer(self.case, noise, seed, gradient=gradient)

    @cached_property
    def drawn(self) -> tuple[Answer, dict[str, float]]:
        """The mean of many answers, and what it is sure to."""
        return mean_of_draws(partial(self.reference.answer, self.case))

    def floor(self, part: str) -> float:
        """Return what another value or gradient may be off without a look at the noise."""
        if part == "value":
            return FLOOR[self.dtype][0]
        largest = 1.0 if self.gradient is None else max(0.3, float(self.gradient.abs().max()))
        return FLOOR[self.dtype][1] * largest

    def differing(
        self, part: str, found: Any, wanted: Any = None, times: float = 1.0
    ) -> Mismatch | None:
        """Return how far a "value" or "gradient" is from the one here, or ``wanted``, or None."""
        wanted = getattr(self, part) if wanted is None else wanted
        return differing(found, wanted, self.floor(part), partial(noise, self, part), times)


@cache
def noise(expected: Expected, part: str) -> float:
    """Return what rounding may change of the value or the gradient."""
    if expected.reference.random:
        return expected.drawn[1][part]
    exact = part == "value" and expected.case.exact  # its scores are not rounded
    if exact or not math.isfinite(expected.value):
        return 0.0
    answers = [expected.answer(gradient=part == "gradient", seed=seed) for seed in SEEDS]
    others = [getattr(answer, part) for answer in answers]
    mine = getattr(expected, part)
    return MARGIN * max(float(_off(each, mine).max()) for each in others if each is not None)


EXPECTED = cache(Expected)  # one for each reference and batch, whichever candidate is held to it


class Subject:
    """A candidate and the reference that it is held against.

    ``answer(case, dtype)`` is the candidate's, kept because values and gradients are asked for one
    after the other; ``expected(case, dtype)`` the reference's, kept for other candidates too.
    """

    def __init__(self, candidate: Candidate, reference: Reference) -> None:
        self.candidate, self.reference = candidate, reference
        self.answer = cache(self.fresh_answer)
        self.expected = partial(EXPECTED, reference)

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return the answer (a mean if it is random), with the gradient of ``factor`` x value."""
        answer = partial(self.candidate.answer, case, dtype, factor)
        if self.reference.random:
            return mean_of_draws(answer)[0]
        torch.default_generator.manual_seed(0)  # torch's own seeds GPUs too, and takes 1 ms
        return answer()

    def wrong(
        self, part: str, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's "value" or "gradient" differs from the reference's, or None.

        It may differ by what rounding in ``precision`` does, without one in ``dtype``.
        """
        found = getattr(self.answer(case, dtype), part)
        return self.expected(case, precision or dtype).differing(part, found)


def mean_of_draws(draw: Callable[[], Answer]) -> tuple[Answer, dict[str, float]]:
    """Return the mean of many answers, and STANDARD_ERRORS of the difference of two means."""
    torch.default_generator.manual_seed(0)
    answers = [draw() for _ in range(DRAWS)]
    values = torch.tensor([answer.value for answer in answers], dtype=torch.float64)
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    if len(gradients) < DRAWS:
        return Answer(float(values.mean()), None), {"value": 0.0, "gradient": 0.0}
    stacked, unit = torch.stack(gradients), STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5
    errors = {"value": unit * float(values.std()), "gradient": unit * float(stacked.std(0).max())}
    return Answer(float(values.mean()), stacked.mean(0)), errors


def differing(
    found: Any, expected: Any, floor: float, more: Callable[[], float], times: float = 1.0
) -> Mismatch | None:
    """Return how far a value or gradient (B, D) is from the expected one.

    None within ``times`` what is allowed, ``floor`` and ``more()``, which takes long to find out;
    None too where no gradient is expected.
    """
    if expected is None:
        return None
    off = _off(0.0 if found is None else found, expected)
    largest = float(off.max())
    if largest <= times * floor or largest <= (limit := times * (floor + more())):
        return None
    if found is None:
        return Mismatch("no gradient reaches the embeddings", largest / limit)
    if not off.ndim:
        text = f"value {found:.7g}, expected {expected:.7g} (+-{limit:.1g})"
        return Mismatch(text, largest / limit)
    row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), expected.shape[1])
    text = (
        f"gradient of row {row}, column {column} is {found[row, column]:.7g}, expected "
        f"{expected[row, column]:.7g} (+-{limit:.1g})"
    )
    if float(expected.abs().max()) > limit:
        share = float((found * expected).sum() / expected.square().sum())
        text += f"; along the expected gradient it is {share:.4g} of it"
    return Mismatch(text, largest / limit)


def _off(found: Any, expected: Any) -> Tensor:
    return torch.as_tensor(found - expected, dtype=torch.float64).abs()


def reference(name: str, options: Mapping[str, Any]) -> Reference:
    """Return the reference of the loss registered as ``name``, with its hyperparameters.

    Raises ConfigError for a name without a formula, or naming every wrong hyperparameter.
    """
    if name not in reference_names():
        raise ConfigError("--as", [unknown_name("reference", name, reference_names())])
    config = create_loss(name, **options).config  # it may refuse more than its Config says
    if getattr(config, "simix", False):
        raise ConfigError("--option", ["simix  makes images of its own (allowed here: false)"])
    of_scores = _roadmap(config) if name == "roadmap" else _mean(PER_QUERY[name], config)
    return Reference(name, options, config, of_scores)


def reference_names() -> list[str]:
    """Return the losses that have a reference, in alphabetical order."""
    return sorted([*PER_QUERY, "roadmap"])


def _mean(formula: Callable, config: Any) -> OfScores:
    """Return the mean of a formula over the queries that have a positive besides themselves."""
    own_counts = getattr(config, "include_query", False)
    ranked_only = formula is formulas.recall_at_k  # its query is ranked and no positive
    by_class = getattr(config, "query_weights", "uniform") == "class"

    def of_scores(scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
        queries = (positives & ranked).any(1).nonzero().flatten().tolist()
        if not queries:
            return scores.sum() * torch.nan
        losses = []
        for query in queries:
            items = torch.ones_like(ranked[query]) if own_counts else ranked[query]
            positive = positives[query] & ranked[query] if ranked_only else positives[query]
            losses.append(formula(scores[query, items], positive[items], config, len(queries)))
        values = torch.stack(losses)
        if not by_class:
            return values.mean()
        # queries of one class have the same row of positives
        _, group = torch.unique(positives[queries], dim=0, return_inverse=True)
        means = [values[group == number].mean() for number in range(int(group.max()) + 1)]
        return torch.stack(means).mean()

    return of_scores


def _roadmap(config: Any) -> OfScores:
    """Return (1 - lambda) SupAP + lambda calibration (ROADMAP, Eq. 2).

    The calibration (Eq. 7) is a mean by query, or over pairs that are not 0.
    """
    weights = config.weights or [1.0 - config.lambda_, config.lambda_]
    sup_ap = _mean(formulas.sup_ap, config)

    def calibration(scores: Tensor, positives: Tensor, ranked: Tensor) -> Tensor:
        near, far = positives & ranked, ~positives
        lack = (config.alpha - scores).clamp(min=0.0) * near
        excess = (scores - config.beta).clamp(min=0.0) * far
        valid = near.any(1)
        if not valid.any():
            return scores.sum() * torch.nan
        if config.reduction == "nonzero":
            means = [part.sum() / max(1, int((part > 0).sum())) for part in (lack, excess)]
            return means[0] + means[1]
        per_query = lack.sum(1) / near.sum(1).clamp(min=1)
        per_query = per_query + excess.sum(1) / far.sum(1).clamp(min=1)
        return per_query[valid].mean()

    def of_scores(*scored: Tensor) -> Tensor:
        return weights[0] * sup_ap(*scored) + weights[1] * calibration(*scored)

    return of_scores
