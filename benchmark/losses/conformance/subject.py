"""A candidate beside its reference: how far apart they may be, and whether they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

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
class Expected:
    """The reference's answer to a batch, and how far another answer may be from it."""

    answer: Answer
    of_value: float
    of_gradient: float


@dataclass(frozen=True)
class Mismatch:
    """What is wrong in words, and how many times what is allowed."""

    text: str
    times: float = math.inf


@dataclass(frozen=True)
class Subject:
    """A candidate and the reference that it is held against.

    Answers to a batch are kept: values and gradients are asked for one after the other.
    """

    candidate: Candidate
    reference: Reference
    _expected: dict[tuple[int, torch.dtype], tuple[Case, Expected]] = field(default_factory=dict)
    _answers: dict[tuple[int, torch.dtype], tuple[Case, Answer]] = field(default_factory=dict)

    def expected(self, case: Case, dtype: torch.dtype) -> Expected:
        """Return the reference's answer and what rounding in ``dtype`` may change of it."""
        key = id(case), dtype
        if key not in self._expected:
            self._expected[key] = case, self._expect(case, dtype)
        return self._expected[key][1]

    def _expect(self, case: Case, dtype: torch.dtype) -> Expected:
        answer, errors = self._mean(lambda seed: self.reference.answer(case))
        of_value, share = FLOOR[dtype]
        if answer.gradient is None:
            return Expected(answer, of_value, share)
        of_gradient = share * max(0.3, float(answer.gradient.abs().max()))
        if self.reference.random:
            return Expected(answer, of_value + errors[0], of_gradient + errors[1])
        others = [self.reference.answer(case, NOISE[dtype], seed) for seed in SEEDS]
        if not case.exact:  # scores of an exact batch are not rounded
            of_value += MARGIN * max(abs(other.value - answer.value) for other in others)
        of_gradient += MARGIN * max(_largest(other.gradient, answer.gradient) for other in others)
        return Expected(answer, of_value, of_gradient)

    def answer(self, case: Case, dtype: torch.dtype) -> Answer:
        """Return the candidate's answer, the mean of many draws where the loss is random."""
        key = id(case), dtype
        if key not in self._answers:
            self._answers[key] = case, self.fresh_answer(case, dtype)
        return self._answers[key][1]

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return the same from new calls, with the gradient of ``factor`` x value."""
        return self._mean(lambda seed: self.candidate.answer(case, dtype, factor))[0]

    def _mean(self, draw: Callable[[int], Answer]) -> tuple[Answer, tuple[float, float]]:
        """Return an answer, or the mean of many and STANDARD_ERRORS of the difference of two."""
        torch.manual_seed(0)
        first = draw(0)
        if not self.reference.random:
            return first, (0.0, 0.0)
        answers = [first, *(draw(seed) for seed in range(1, DRAWS))]
        values = torch.tensor([answer.value for answer in answers], dtype=torch.float64)
        gradients = [answer.gradient for answer in answers if answer.gradient is not None]
        if len(gradients) < DRAWS:
            return Answer(float(values.mean()), None), (0.0, 0.0)
        stacked = torch.stack(gradients)
        unit = STANDARD_ERRORS * (2.0 / DRAWS) ** 0.5
        errors = unit * float(values.std()), unit * float(stacked.std(0).max())
        return Answer(float(values.mean()), stacked.mean(0)), errors

    def wrong_value(
        self, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's value in ``dtype`` differs from the reference's, None if not.

        It may differ by what rounding in ``precision`` does, without one in ``dtype``.
        """
        expected = self.expected(case, precision or dtype)
        value = self.answer(case, dtype).value
        return differing_values(value, expected.answer.value, expected.of_value)

    def wrong_gradient(
        self, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the candidate's gradient differs from the reference's, None if not."""
        expected = self.expected(case, precision or dtype)
        gradient = self.answer(case, dtype).gradient
        return differing_gradients(gradient, expected.answer.gradient, expected.of_gradient)


def differing_values(value: float, expected: float, allowed: float) -> Mismatch | None:
    """Return how far a value is from the expected one, None if it may be."""
    off = abs(value - expected)
    if off <= allowed:  # False for NaN
        return None
    return Mismatch(f"value {value:.7g}, expected {expected:.7g} (+-{allowed:.1g})", off / allowed)


def differing_gradients(
    gradient: Tensor | None, expected: Tensor | None, allowed: float
) -> Mismatch | None:
    """Return how far a gradient (B, D) is from the expected one, None if it may be."""
    if expected is None:
        return None
    largest = float(expected.abs().max())
    if gradient is None:
        none = Mismatch("no gradient reaches the embeddings", largest / allowed)
        return none if largest > allowed else None
    off = (gradient - expected).abs()
    if off.max() <= allowed:  # False for NaN
        return None
    row, column = divmod(int(off.nan_to_num(torch.inf).argmax()), expected.shape[1])
    text = (
        f"gradient of row {row}, column {column} is {gradient[row, column]:.7g}, expected "
        f"{expected[row, column]:.7g} (+-{allowed:.1g})"
    )
    if largest > allowed:
        share = float((gradient * expected).sum() / expected.square().sum())
        text += f"; along the expected gradient it is {share:.4g} of it"
    return Mismatch(text, float(off.max()) / allowed)


def _largest(first: Tensor | None, second: Tensor | None) -> float:
    assert first is not None and second is not None
    return float((first - second).abs().max())
