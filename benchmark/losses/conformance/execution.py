"""How an implementation behaves as a program: autocast, repeated calls, memory, processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.core.plugin_errors import in_words
from benchmark.losses.conformance import cases
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.checks import FLOAT32, ordinary_batches
from benchmark.losses.conformance.findings import Finding, examine
from benchmark.losses.conformance.memory import tensor_bytes
from benchmark.losses.conformance.subject import (
    SEEDS,
    Mismatch,
    Subject,
    Tolerance,
    differing_values,
)

# bfloat16 has 8 bits: what that does to scores near 1, and to the operations after them.
BFLOAT16_NOISE, BFLOAT16_FLOOR = 4e-3, 0.02
MEMORY_SIZES = (96, 192)
# The formula taken literally compares all triples: memory of batch^3 and no more.
LARGEST_EXPONENT = 3.3


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
    if not all(peaks):
        return Finding(name, "not applicable", "not counted: a profiler of its own is running")
    exponent = math.log(peaks[-1] / peaks[-2]) / math.log(MEMORY_SIZES[-1] / MEMORY_SIZES[-2])
    note = f"batch^{exponent:.1f} from batch {MEMORY_SIZES[-2]} to {MEMORY_SIZES[-1]}"
    if left > 4 * MEMORY_SIZES[-1] ** 2:  # a matrix of scores
        note = f"each call keeps {left / 2**20:.1f} MiB of its {peaks[-1] / 2**20:.1f} MiB"
        return Finding(name, "failed", note)
    return Finding(name, "failed" if exponent > LARGEST_EXPONENT else "passed", note)
