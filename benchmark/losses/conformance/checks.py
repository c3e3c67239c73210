"""What an implementation of a ranking loss has to do on batches made for the purpose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.losses.conformance import cases
from benchmark.losses.conformance.candidate import in_words
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.findings import Finding, examine
from benchmark.losses.conformance.memory import tensor_bytes
from benchmark.losses.conformance.subject import (
    SEEDS,
    Mismatch,
    Subject,
    Tolerance,
    differing_gradients,
    differing_values,
)

FLOAT32, FLOAT64 = torch.float32, torch.float64
# bfloat16 has 8 bits: what that does to scores near 1, and to the operations after them.
BFLOAT16_NOISE, BFLOAT16_FLOOR = 4e-3, 0.02
MEMORY_SIZES = (96, 192)
# The formula taken literally compares all triples: memory of batch^3 and no more.
LARGEST_EXPONENT = 3.3
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


def check_execution(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on autocast, determinism, calls in flight, inputs and memory."""
    batches = ordinary_batches()
    yield _autocast(subject, batches[0])
    yield examine("determinism", batches[:2], lambda case: _differs(subject, case, batches[3]))
    yield examine(
        "two calls in flight", batches[:2], lambda case: _mixes(subject, case, batches[3])
    )
    yield examine("inputs unchanged", batches[:2], lambda case: _writes(subject, case))
    yield _memory(subject)


def _autocast(subject: Subject, batch: Case) -> Finding:
    """Compare with what rounding all scores to bfloat16 can make of the formula."""
    name = "autocast"
    finding = examine(name, [batch], lambda case: _rounds(subject, case), crash="not applicable")
    if finding.result != "passed":
        return finding
    value = subject.reference.answer(batch, gradient=False).value
    off = abs(_under_autocast(subject, batch)[0] - value)
    full = subject.expected(batch, FLOAT32).of_value.allows(off)
    return replace(finding, note=f"in {'full' if full else 'bfloat16'} precision")


def _under_autocast(subject: Subject, case: Case) -> tuple[float, Tensor | None]:
    """Return value and gradient (B, D) under autocast to bfloat16."""
    torch.manual_seed(0)
    free = case.embeddings.float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = subject.candidate.value(normalize(free, dim=1), case.labels.clone())
    if value.requires_grad:
        value.backward()
    return value.item(), free.grad


def _rounds(subject: Subject, case: Case) -> Mismatch | None:
    """Return how autocast to bfloat16 does more than round, None if it does not."""
    value, gradient = _under_autocast(subject, case)
    of_value = partial(subject.reference.answer, case, gradient=False)
    expected = of_value().value
    noisy = [of_value(BFLOAT16_NOISE, seed).value for seed in SEEDS]
    noise = 4 * max(abs(other - expected) for other in noisy)
    if found := differing_values(value, expected, Tolerance(BFLOAT16_FLOOR, lambda: noise)):
        return found
    if gradient is None:
        return Mismatch("no gradient reaches the embeddings")
    return None if gradient.isfinite().all() else Mismatch("the gradient is not finite")


def _differs(subject: Subject, case: Case, other: Case) -> Mismatch | None:
    """Return how a second call, after one with another batch, gives another answer."""
    first = subject.fresh_answer(case, FLOAT32)
    subject.fresh_answer(other, FLOAT32)
    second = subject.fresh_answer(case, FLOAT32)
    if first.value != second.value:
        return Mismatch(f"value {first.value:.9g}, then {second.value:.9g}")
    if first.gradient is not None and second.gradient is not None:
        change = float((first.gradient - second.gradient).abs().max())
        return Mismatch(f"the gradient changes by {change:.3g}") if change else None
    return None


def _mixes(subject: Subject, case: Case, other: Case) -> Mismatch | None:
    """Return how a gradient changes when another batch goes forward before it goes backward."""
    torch.manual_seed(0)
    expected = subject.candidate.answer(case, FLOAT32).gradient
    free = case.embeddings.float().requires_grad_()
    torch.manual_seed(0)
    value = subject.candidate.value(normalize(free, dim=1), case.labels)
    subject.candidate.value(normalize(other.embeddings.float(), dim=1), other.labels)
    if not value.requires_grad or expected is None:
        return None
    value.backward()
    assert free.grad is not None  # the candidate has a gradient on this batch
    change = float((free.grad.double() - expected).abs().max())
    text = f"the gradient changes by {change:.3g} when another batch comes in between"
    return Mismatch(text) if change else None


def _writes(subject: Subject, case: Case) -> Mismatch | None:
    """Return which of its inputs the candidate writes into."""
    unit = normalize(case.embeddings.float(), dim=1).requires_grad_()
    labels = case.labels.clone()
    before = unit.detach().clone()
    value = subject.candidate.value(unit, labels)
    if value.requires_grad:
        value.backward()
    if not torch.equal(unit.detach(), before):
        return Mismatch("writes into the embeddings")
    return None if torch.equal(labels, case.labels) else Mismatch("writes into the labels")


def _memory(subject: Subject) -> Finding:
    """Measure how the peak grows with the batch, and what stays after a call."""
    name = "memory"
    peaks = []
    try:
        for size in MEMORY_SIZES:
            case = cases.in_order(cases.mixed(f"batch of {size}", [4] * (size // 4), 16, 12))
            subject.candidate.answer(case, FLOAT32)  # what is made once does not count
            peak, left = tensor_bytes(partial(subject.candidate.answer, case, FLOAT32))
            peaks.append(peak)
    except Exception as error:
        return Finding(name, "not applicable", in_words(error))
    exponent = math.log(peaks[-1] / peaks[-2]) / math.log(MEMORY_SIZES[-1] / MEMORY_SIZES[-2])
    note = f"batch^{exponent:.1f} from batch {MEMORY_SIZES[-2]} to {MEMORY_SIZES[-1]}"
    if left > 4 * MEMORY_SIZES[-1] ** 2:  # a matrix of scores
        note = f"each call keeps {left / 2**20:.1f} MiB of its {peaks[-1] / 2**20:.1f} MiB"
        return Finding(name, "failed", note)
    return Finding(name, "failed" if exponent > LARGEST_EXPONENT else "passed", note)
