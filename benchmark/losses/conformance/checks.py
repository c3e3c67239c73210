"""What an implementation of a ranking loss has to do on batches made for the purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import torch
from torch import Tensor

from benchmark.losses.conformance import cases
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.findings import Finding, examine
from benchmark.losses.conformance.subject import (
    Mismatch,
    Subject,
    differing_gradients,
    differing_values,
)

FLOAT32, FLOAT64 = torch.float32, torch.float64
# From a batch to another one, and what becomes of the gradient of the first one (B, D).
Transform = Callable[[Case], tuple[Case, Callable[[Tensor], Tensor]]]


@cache
def ordinary_batches() -> list[Case]:
    """Return batches that every implementation has to take: equal classes, sorted by label."""
    return [
        cases.in_order(case)
        for case in (
            cases.mixed("six classes of four", [4] * 6, 16, 1),
            cases.mixed("scores near each other", [4] * 6, 8, 2, narrow=True),
            cases.mixed("two classes of nine", [9] * 2, 6, 3),
            cases.mixed("thirty pairs", [2] * 30, 32, 4),
            cases.mixed("24 classes of five", [5] * 24, 24, 14),
        )
    ]


@cache
def unequal_batches() -> list[Case]:
    """Return batches whose classes have different sizes, in random order."""
    return [
        cases.mixed("classes of 7, 5, 4 and 2", [7, 5, 4, 2], 12, 5),
        cases.mixed("classes of 20, 3 and 2", [20, 3, 2], 10, 6, narrow=True),
    ]


@cache
def unusual_batches() -> dict[str, list[Case]]:
    """Return by check the batches that implementations tend to forget."""
    duplicates = [cases.lattice("repeated images", [4] * 4, seed, 0) for seed in (4, 5)]
    return {
        "perfect ranking": [
            cases.perfect("six perfect classes of four", [4] * 6),
            cases.perfect("96 perfect classes of four", [4] * 96),
        ],
        "unequal classes": unequal_batches(),
        "classes of one image": [
            cases.mixed("classes of 4, 3, 1, 1 and 1", [4, 3, 1, 1, 1], 8, 7),
            cases.mixed("one pair among ten", [2] + [1] * 8, 6, 8, narrow=True),
        ],
        "one class": [
            cases.mixed("eight images of one class", [8], 8, 9),
            cases.mixed("two images of one class", [2], 4, 10),
        ],
        "ties": [cases.lattice("tied scores", [4] * 3, seed, 6) for seed in (1, 2, 3)],
        "duplicates": [*duplicates, cases.collapsed("all images equal", [4] * 3)],
    }


def check_agreement(subject: Subject) -> Iterator[Finding]:
    """Yield whether values and gradients are those of the formula."""
    batches = _small_if_random(subject, ordinary_batches())
    for name, wrong in (("values", subject.wrong_value), ("gradients", subject.wrong_gradient)):
        finding = examine(
            f"{name}, float64",
            batches,
            partial(wrong, dtype=FLOAT64),
            crash="not applicable",
        )
        if finding.result == "failed":
            problem = partial(wrong, dtype=FLOAT64, precision=FLOAT32)
            rough = examine(finding.check, batches, problem)
            finding = rough if rough.case else replace(rough, note="to float32 precision only")
        yield finding
        yield examine(f"{name}, float32", batches, partial(wrong, dtype=FLOAT32), refusal="failed")
    if subject.reference.perturbs:
        note = "the gradient is a difference quotient, which a factor may change"
        yield Finding("factor on the loss", "not applicable", note)
    else:
        yield examine("factor on the loss", batches[:2], lambda case: _wrong_factor(subject, case))


def check_invariances(subject: Subject) -> Iterator[Finding]:
    """Yield whether order, names of labels and rotation leave values and gradients as they are."""
    batches = [*ordinary_batches()[:2], unequal_batches()[0]]
    equal, mixed = batches[:2], batches[2:]
    for name, transform in (
        ("order of images", _reordered),
        ("names of labels", _renamed),
        ("rotation of the space", _rotated),
    ):
        problem = partial(_changed, subject, transform=transform)
        finding = examine(name, equal, problem)
        if finding.result == "passed":
            other = examine(name, mixed, problem)
            finding = finding if other.result == "not applicable" else other
        yield finding


def check_unusual(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on perfect rankings, unusual classes, ties and references."""

    def wrong(case: Case) -> Mismatch | None:
        return subject.wrong_value(case, FLOAT32) or subject.wrong_gradient(case, FLOAT32)

    for name, batches in unusual_batches().items():
        yield examine(name, _small_if_random(subject, batches), wrong)
    if subject.candidate.reference_arguments is None:
        note = "takes embeddings and labels only"
        yield Finding("references", "not applicable", note)
        return
    references = cases.with_references("6 queries, 24 references", [5] * 6, 10, 6, 11)
    yield examine("references", [references], wrong)


def _small_if_random(subject: Subject, batches: list[Case]) -> list[Case]:
    """Return the batches that are small enough to be drawn many times, if they have to be."""
    return [case for case in batches if len(case.labels) < 64 or not subject.reference.random]


def _wrong_factor(subject: Subject, case: Case) -> Mismatch | None:
    """Return how the gradient of -3 x loss is not -3 x the gradient."""
    expected = subject.expected(case, FLOAT32)
    if expected.gradient is None:
        return None
    gradient = subject.fresh_answer(case, FLOAT32, factor=-3.0).gradient
    found = differing_gradients(gradient, -3.0 * expected.gradient, expected.of_gradient, 3.0)
    return found and replace(found, text=f"of -3 x loss: {found.text}")


def _changed(subject: Subject, case: Case, transform: Transform) -> Mismatch | None:
    """Return how the candidate's answer changes with a transformation that should leave it."""
    other, moved = transform(case)
    before, after = subject.answer(case, FLOAT32), subject.answer(other, FLOAT32)
    allowed = subject.expected(case, FLOAT32)
    found = differing_values(after.value, before.value, allowed.of_value, 2.0)
    if found is None and before.gradient is not None:
        gradient = moved(before.gradient)
        found = differing_gradients(after.gradient, gradient, allowed.of_gradient, 2.0)
    return found


def _reordered(case: Case) -> tuple[Case, Callable[[Tensor], Tensor]]:
    order = torch.randperm(len(case.labels), generator=torch.Generator().manual_seed(0))
    other = replace(case, embeddings=case.embeddings[order], labels=case.labels[order])
    return other, lambda gradient: gradient[order]


def _renamed(case: Case) -> tuple[Case, Callable[[Tensor], Tensor]]:
    """Give labels other numbers, with gaps between them and in another order."""
    return replace(case, labels=(case.labels * 37 + 50) % 101), lambda gradient: gradient


def _rotated(case: Case) -> tuple[Case, Callable[[Tensor], Tensor]]:
    dim, generator = case.embeddings.shape[1], torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(dim, dim, generator=generator).double()).Q
    other = replace(case, embeddings=(case.embeddings @ rotation).float().double())
    return other, lambda gradient: gradient @ rotation
