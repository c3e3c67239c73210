"""Checks of a ranking loss that has no formula: it is compared with itself, in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from benchmark.losses.conformance.check_outcomes import CheckOutcome, NoNumberError, of_error
from benchmark.losses.conformance.formulas import (
    FLOAT32,
    FLOAT64,
    SEEDS,
    Answer,
    Case,
    Mismatch,
    Reference,
)
from benchmark.losses.conformance.suite import CHECKS as OF_FORMULAS
from benchmark.losses.conformance.suite import (
    LossUnderTest,
    all_findings,
    examine,
    load,
    mixed,
    ordinary_batches,
)

# What only a formula can say.
UNKNOWN = ("values, float64", "gradients, float64", "perfect ranking")
SLOPES = "gradients, differences"
CHECKS = (
    SLOPES,
    "no positives",
    "length of rows",
    "NaN",
    *(check for check in OF_FORMULAS if check not in UNKNOWN),
)
SEEN = 1e-12  # a move that the value of a loss in float64 follows
MOVE = 1e-7  # for differences: small, because the value of a hinge loss has kinks
ROUNDING = 1e-5  # of a difference


@dataclass(frozen=True, eq=False)
class Itself(Reference):
    """The loss at ``name`` as its own reference: in float64, or float32 if it takes that alone."""

    @cached_property
    def candidate(self) -> LossUnderTest:
        """The implementation, loaded apart from the one that is checked."""
        return load(self.name, self)

    def answer(
        self, case: Case, noise: float = 0.0, seed: int = 0, *, gradient: bool = True
    ) -> Answer:
        """Return the answer to rows disturbed by ``noise`` x normal numbers.

        Raise NoNumberError for a value that is not finite.
        """
        moved = replace(case, embeddings=case.embeddings + noise * disturbance(case, seed))
        try:
            answer = self.candidate.fresh_answer(moved, FLOAT64)
        except Exception:
            answer = self.candidate.fresh_answer(moved, FLOAT32)
        if not math.isfinite(answer.value):
            raise NoNumberError(f"returned {answer.value}")
        return answer


def findings(source: str, reference: Itself, processes: bool) -> Iterator[CheckOutcome | None]:
    """Yield None when the loss is loaded, then the outcome of each check."""
    candidate = load(source, reference)
    yield None
    yield check_slopes(candidate, reference)

    def wrong(case: Case) -> Mismatch | None:
        if candidate.answer(case, FLOAT32).gradient is None:
            return Mismatch("no gradient reaches the embeddings: backward() raises")
        return candidate.all_wrong(case)

    yield examine("no positives", [mixed("eight classes of one", [1] * 8, 6, 15)], wrong)
    yield check_length(candidate)
    yield check_nan(candidate)
    for finding in all_findings(candidate, processes):
        if finding.check not in UNKNOWN:
            yield finding


def check_slopes(candidate: LossUnderTest, reference: Itself) -> CheckOutcome:
    """Return whether gradients are those that central differences of the value have.

    The two differences that are compared tell how far they may be off themselves.
    """
    coarse = []

    def wrong(case: Case) -> Mismatch | None:
        answer = partial(reference.answer, case)
        here = answer()
        if here.gradient is None:
            return Mismatch("no gradient reaches the embeddings")
        for seed in SEEDS:
            found = float((here.gradient * disturbance(case, seed)).sum())
            if found and answer(SEEN, seed).value == here.value:
                coarse.append(case)
                return None
            far, near = (
                (answer(move, seed).value - answer(-move, seed).value) / (2 * move)
                for move in (MOVE, MOVE / 2)
            )
            allowed = 10 * abs(far - near) + ROUNDING * max(1.0, abs(here.value), abs(found))
            if abs(found - near) > allowed:
                text = f"in a random direction the value changes by {near:.6g} (+-{allowed:.1g})"
                return Mismatch(f"{text}, the gradient says {found:.6g}")
        return None

    outcome = examine(SLOPES, ordinary_batches(), wrong)
    if coarse and outcome.result == "passed":
        note = "the value stays where rows move a little: float32 inside, or steps"
        return CheckOutcome(SLOPES, "not applicable", note)
    return outcome


def check_length(candidate: LossUnderTest) -> CheckOutcome:
    """Return whether rows of any length have the value of rows of length 1."""
    case = ordinary_batches()[0]
    rows = case.embeddings.float()
    try:
        one, two = (candidate.value(rows * length, case.labels).item() for length in (1.0, 2.0))
    except Exception as error:
        return of_error("length of rows", case, error)
    if abs(two - one) <= 1e-5 * max(1.0, abs(one)):
        return CheckOutcome("length of rows", "passed", "the value is the same at any length")
    note = f"made for rows of length 1: with twice that it is {two:.6g} instead of {one:.6g}"
    return CheckOutcome("length of rows", "not applicable", note)


def check_nan(candidate: LossUnderTest) -> CheckOutcome:
    """Return whether a row of NaN shows in the value."""

    def hidden(case: Case) -> Mismatch | None:
        rows = case.embeddings.float()
        rows[0] = math.nan
        value = candidate.value(rows, case.labels).item()
        if not math.isfinite(value):
            return None
        return Mismatch(f"with NaN in the first row the value is {value:.6g}")

    return examine("NaN", ordinary_batches()[:1], hidden, crash="not applicable")


def disturbance(case: Case, seed: int) -> Tensor:
    """Return normal numbers (B, D)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(case.embeddings.shape, generator=generator).double()
