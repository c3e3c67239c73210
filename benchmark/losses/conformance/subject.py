"""A candidate beside its reference: how far apart they may be, and whether they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import Tensor

from benchmark.losses.conformance.candidate import Answer, Candidate
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import Reference

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


@dataclass(frozen=True)
class Tolerance:
    """How far apart two answers may be: ``floor`` and ``more()``, which takes long to find out."""

    floor: float
    more: Callable[[], float]

    @cached_property
    def whole(self) -> float:
        """The largest difference that is allowed."""
        return self.floor + self.more()

    def allows(self, off: float, times: float = 1.0) -> bool:
        """Say whether a difference is at most ``times`` what is allowed; False for NaN."""
        return off <= times * self.floor or off <= times * self.whole


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
        return self._answer(0, gradient=False).value

    @cached_property
    def gradient(self) -> Tensor | None:
        """The gradient (B, D), None where the value is not finite."""
        return self._answer(0, gradient=True).gradient

    @cached_property
    def of_value(self) -> Tolerance:
        """How far another value may be."""
        return Tolerance(FLOOR[self.dtype][0], partial(self._noise, "value"))

    @cached_property
    def of_gradient(self) -> Tolerance:
        """How far a number of another gradient may be."""
        largest = 1.0 if self.gradient is None else max(0.3, float(self.gradient.abs().max()))
        return Tolerance(FLOOR[self.dtype][1] * largest, partial(self._noise, "gradient"))

    def _noise(self, part: str) -> float:
        """Return what the reference's value or gradient may change by."""
        if self.reference.random:
            return self._drawn[1][part]
        exact = part == "value" and self.case.exact  # its scores are not rounded
        if exact or not math.isfinite(self.value):
            return 0.0
        others = [getattr(self._answer(seed, part == "gradient"), part) for seed in SEEDS]
        mine = getattr(self, part)
        return MARGIN * max(float(_off(each, mine).max()) for each in others if each is not None)

    def _answer(self, seed: int, gradient: bool) -> Answer:
        """Return the reference's answer, with noise for a seed other than 0."""
        if self.reference.random:
            return self._drawn[0]
        noise = NOISE[self.dtype] if seed else 0.0
        return self.reference.answer(self.case, noise, seed, gradient=gradient)

    @cached_property
    def _drawn(self) -> tuple[Answer, dict[str, float]]:
        return mean_of_draws(lambda: self.reference.answer(self.case))


expected = cache(Expected)  # one for each reference and batch, whichever candidate is held to it


class Subject:
    """A candidate and the reference that it is held against.

    ``answer(case, dtype)`` is the candidate's, kept because values and gradients are asked for one
    after the other; ``expected(case, dtype)`` the reference's, and what rounding may change of it.
    """

    def __init__(self, candidate: Candidate, reference: Reference) -> None:
        self.candidate, self.reference = candidate, reference
        self.answer = cache(self.fresh_answer)
        self.expected = partial(expected, reference)

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return the answer (a mean if it is random), with the gradient of ``factor`` x value."""
        answer = partial(self.candidate.answer, case, dtype, factor)
        if self.reference.random:
            return mean_of_draws(answer)[0]
        torch.default_generator.manual_seed(0)
        return answer()

    def wrong(
        self, part: str, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's "value" or "gradient" differs from the reference's, or None.

        It may differ by what rounding in ``precision`` does, without one in ``dtype``.
        """
        wanted, found = self.expected(case, precision or dtype), self.answer(case, dtype)
        allowed = wanted.of_value if part == "value" else wanted.of_gradient
        return differing(getattr(found, part), getattr(wanted, part), allowed)


def mean_of_draws(draw: Callable[[], Answer]) -> tuple[Answer, dict[str, float]]:
    """Return the mean of many answers, and STANDARD_ERRORS of the difference of two means."""
    torch.default_generator.manual_seed(0)  # torch's own seeds GPUs too, and takes 1 ms
    answers = [draw() for _ in range(DRAWS)]
    values = torch.tensor([answer.value for answer in answers], dtype=torch.float64)
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    if len(gradients) < DRAWS:
        return Answer(float(values.mean()), None), {"value": 0.0, "gradient": 0.0}
    stacked, unit = torch.stack(gradients), STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5
    errors = {"value": unit * float(values.std()), "gradient": unit * float(stacked.std(0).max())}
    return Answer(float(values.mean()), stacked.mean(0)), errors


def differing(found: Any, expected: Any, allowed: Tolerance, times: float = 1.0) -> Mismatch | None:
    """Return how far a value or gradient (B, D) is from the expected one.

    None within ``times`` what is allowed, and where no gradient is expected.
    """
    if expected is None:
        return None
    off = _off(0.0 if found is None else found, expected)
    if allowed.allows(float(off.max()), times):
        return None
    limit = times * allowed.whole
    share_of_limit = float(off.max()) / limit
    if found is None:
        return Mismatch("no gradient reaches the embeddings", share_of_limit)
    if not off.ndim:
        text = f"value {found:.7g}, expected {expected:.7g} (+-{limit:.1g})"
        return Mismatch(text, share_of_limit)
    row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), expected.shape[1])
    text = (
        f"gradient of row {row}, column {column} is {found[row, column]:.7g}, expected "
        f"{expected[row, column]:.7g} (+-{limit:.1g})"
    )
    if float(expected.abs().max()) > limit:
        share = float((found * expected).sum() / expected.square().sum())
        text += f"; along the expected gradient it is {share:.4g} of it"
    return Mismatch(text, share_of_limit)


def _off(found: Any, expected: Any) -> Tensor:
    return torch.as_tensor(found - expected, dtype=torch.float64).abs()
