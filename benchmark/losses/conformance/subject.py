"""A candidate beside its reference: how far apart they may be, and whether they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import torch
from torch import Tensor

from benchmark.losses.conformance.candidate import Candidate
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import Answer, Reference

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
        return self._drawn[0].value if self.reference.random else self._answer(gradient=False).value

    @cached_property
    def gradient(self) -> Tensor | None:
        """The gradient (B, D), None where the value is not finite."""
        return self._drawn[0].gradient if self.reference.random else self._answer().gradient

    @cached_property
    def of_value(self) -> Tolerance:
        """How far another value may be."""
        return Tolerance(FLOOR[self.dtype][0], self._noise_of_value)

    @cached_property
    def of_gradient(self) -> Tolerance:
        """How far a number of another gradient may be."""
        largest = 1.0 if self.gradient is None else max(0.3, float(self.gradient.abs().max()))
        return Tolerance(FLOOR[self.dtype][1] * largest, self._noise_of_gradient)

    def _noise_of_value(self) -> float:
        if self.reference.random:
            return self._drawn[1][0]
        if self.case.exact or not math.isfinite(self.value):
            return 0.0  # scores of an exact batch are not rounded
        others = [self._answer(seed, gradient=False).value for seed in SEEDS]
        return MARGIN * max(abs(other - self.value) for other in others)

    def _noise_of_gradient(self) -> float:
        if self.reference.random:
            return self._drawn[1][1]
        if self.gradient is None:
            return 0.0
        others = [self._answer(seed).gradient for seed in SEEDS]
        differences = [each - self.gradient for each in others if each is not None]
        return MARGIN * max(float(each.abs().max()) for each in differences)

    def _answer(self, seed: int = 0, *, gradient: bool = True) -> Answer:
        """Return the reference's answer, with noise for a seed other than 0."""
        noise = NOISE[self.dtype] if seed else 0.0
        return self.reference.answer(self.case, noise, seed, gradient=gradient)

    @cached_property
    def _drawn(self) -> tuple[Answer, tuple[float, float]]:
        return mean_of_draws(lambda: self.reference.answer(self.case), random=True)


expected = cache(Expected)  # one for each reference and batch, whichever candidate is held to it


@dataclass(frozen=True, eq=False)
class Subject:
    """A candidate and the reference that it is held against.

    Answers to a batch are kept: values and gradients are asked for one after the other.
    """

    candidate: Candidate
    reference: Reference
    _answers: dict[tuple[Case, torch.dtype], Answer] = field(default_factory=dict)

    def expected(self, case: Case, dtype: torch.dtype) -> Expected:
        """Return the reference's answer and what rounding in ``dtype`` may change of it."""
        return expected(self.reference, case, dtype)

    def answer(self, case: Case, dtype: torch.dtype) -> Answer:
        """Return the candidate's answer, the mean of many draws where the loss is random."""
        if (case, dtype) not in self._answers:
            self._answers[case, dtype] = self.fresh_answer(case, dtype)
        return self._answers[case, dtype]

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return the same from new calls, with the gradient of ``factor`` x value."""
        answer = partial(self.candidate.answer, case, dtype, factor)
        return mean_of_draws(answer, random=self.reference.random)[0]

    def wrong_value(
        self, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's value in ``dtype`` differs from the reference's, None if not.

        It may differ by what rounding in ``precision`` does, without one in ``dtype``.
        """
        wanted = self.expected(case, precision or dtype)
        return differing_values(self.answer(case, dtype).value, wanted.value, wanted.of_value)

    def wrong_gradient(
        self, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's gradient differs from the reference's, None if not."""
        wanted = self.expected(case, precision or dtype)
        gradient = self.answer(case, dtype).gradient
        return differing_gradients(gradient, wanted.gradient, wanted.of_gradient)


def mean_of_draws(
    draw: Callable[[], Answer], *, random: bool
) -> tuple[Answer, tuple[float, float]]:
    """Return an answer, or the mean of many and STANDARD_ERRORS of the difference of two."""
    torch.default_generator.manual_seed(0)  # torch's own seeds GPUs too, and takes 1 ms
    first = draw()
    if not random:
        return first, (0.0, 0.0)
    answers = [first, *(draw() for _ in range(1, DRAWS))]
    values = torch.tensor([answer.value for answer in answers], dtype=torch.float64)
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    if len(gradients) < DRAWS:
        return Answer(float(values.mean()), None), (0.0, 0.0)
    stacked = torch.stack(gradients)
    unit = STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5
    errors = unit * float(values.std()), unit * float(stacked.std(0).max())
    return Answer(float(values.mean()), stacked.mean(0)), errors


def differing_values(
    value: float, expected: float, allowed: Tolerance, times: float = 1.0
) -> Mismatch | None:
    """Return how far a value is from the expected one, None if it may be.

    It may be ``times`` what is allowed.
    """
    off = abs(value - expected)
    if allowed.allows(off, times):
        return None
    limit = times * allowed.whole
    return Mismatch(f"value {value:.7g}, expected {expected:.7g} (+-{limit:.1g})", off / limit)


def differing_gradients(
    gradient: Tensor | None, expected: Tensor | None, allowed: Tolerance, times: float = 1.0
) -> Mismatch | None:
    """Return how far a gradient (B, D) is from the expected one, None if it may be."""
    if expected is None:
        return None
    largest = float(expected.abs().max())
    if gradient is None:
        if allowed.allows(largest, times):
            return None
        return Mismatch("no gradient reaches the embeddings", largest / (times * allowed.whole))
    off = (gradient - expected).abs()
    if allowed.allows(float(off.max()), times):
        return None
    limit = times * allowed.whole
    row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), expected.shape[1])
    text = (
        f"gradient of row {row}, column {column} is {gradient[row, column]:.7g}, expected "
        f"{expected[row, column]:.7g} (+-{limit:.1g})"
    )
    if largest > limit:
        share = float((gradient * expected).sum() / expected.square().sum())
        text += f"; along the expected gradient it is {share:.4g} of it"
    return Mismatch(text, float(off.max()) / limit)
