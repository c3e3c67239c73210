"""What an implementation of a ranking loss has to do on batches made for the purpose."""

from __future__ import annotations

import gc
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, multiprocessing
from torch.autograd.profiler import profile
from torch.nn.functional import normalize

from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent
from benchmark.losses.conformance import cases
from benchmark.losses.conformance.candidate import REFUSALS, Answer, in_words, load
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.findings import Finding, examine
from benchmark.losses.conformance.reference import SEEDS, Mismatch, Subject, differing, noise

FLOAT32, FLOAT64 = torch.float32, torch.float64
# bfloat16 has 8 bits: what that does to scores near 1, and to the operations after them.
BFLOAT16_NOISE, BFLOAT16_FLOOR = 4e-3, 0.02
MEMORY_SIZES = (96, 192)
# The formula taken literally compares all triples: memory of batch^3 and no more.
LARGEST_EXPONENT = 3.3
SCALING, PROCESSES, SECONDS = "scaling over processes", 2, 120


def all_findings(subject: Subject, processes: bool) -> Iterator[Finding]:
    """Yield what each check finds; without ``processes`` none are started."""
    for check in (check_agreement, check_invariances, check_unusual, check_execution):
        yield from check(subject)
    if processes:
        yield check_processes(subject)


def check_agreement(subject: Subject) -> Iterator[Finding]:
    """Yield whether values and gradients are those of the formula."""
    batches = _small_if_random(subject, cases.ordinary_batches())
    for part in ("value", "gradient"):
        name, wrong = f"{part}s", partial(subject.wrong, part)
        problem = partial(wrong, dtype=FLOAT64)
        finding = examine(f"{name}, float64", batches, problem, crash="not applicable")
        if finding.result == "failed":
            rough = examine(finding.check, batches, partial(problem, precision=FLOAT32))
            finding = rough if rough.case else replace(rough, note="to float32 precision only")
        yield finding
        yield examine(f"{name}, float32", batches, partial(wrong, dtype=FLOAT32), refusal="failed")
    if hasattr(subject.reference.config, "lambda_val"):
        note = "the gradient is a difference quotient, which a factor may change"
        yield Finding("factor on the loss", "not applicable", note)
    else:
        yield examine("factor on the loss", batches[:2], lambda case: _wrong_factor(subject, case))


def check_invariances(subject: Subject) -> Iterator[Finding]:
    """Yield whether order, names of labels and rotation leave values and gradients as they are."""
    equal, mixed = cases.ordinary_batches()[:2], cases.unusual_batches()["unequal classes"][:1]
    for name in ("order of images", "names of labels", "rotation of the space"):
        problem = partial(_changed, subject, name=name)
        finding = examine(name, equal, problem)
        if finding.result == "passed":
            other = examine(name, mixed, problem)
            finding = finding if other.result == "not applicable" else other
        yield finding


def check_unusual(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on perfect rankings, unusual classes, ties and references."""

    def wrong(case: Case) -> Mismatch | None:
        return subject.wrong("value", case, FLOAT32) or subject.wrong("gradient", case, FLOAT32)

    for name, batches in cases.unusual_batches().items():
        yield examine(name, _small_if_random(subject, batches), wrong)
    if subject.candidate.reference_arguments is None:
        note = "takes embeddings and labels only"
        yield Finding("references", "not applicable", note)
    else:
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
    found = expected.differing("gradient", gradient, -3.0 * expected.gradient, 3.0)
    return found and replace(found, text=f"of -3 x loss: {found.text}")


def _changed(subject: Subject, case: Case, name: str) -> Mismatch | None:
    """Return how the candidate's answer changes with a transformation that should leave it."""
    other, moved = _transformed(case)[name]
    before, after = subject.answer(case, FLOAT32), subject.answer(other, FLOAT32)
    allowed = subject.expected(case, FLOAT32)
    found = allowed.differing("value", after.value, before.value, 2.0)
    if found is None and before.gradient is not None:
        gradient = moved(before.gradient)
        found = allowed.differing("gradient", after.gradient, gradient, 2.0)
    return found


def _transformed(case: Case) -> dict[str, tuple[Case, Callable[[Tensor], Tensor]]]:
    """Return other batches, and what becomes of the gradient of this one (B, D)."""
    dim = case.embeddings.shape[1]
    order = torch.randperm(len(case.labels), generator=torch.Generator().manual_seed(0))
    normal = torch.randn(dim, dim, generator=torch.Generator().manual_seed(0))
    rotation = torch.linalg.qr(normal.double()).Q
    rotated = replace(case, embeddings=(case.embeddings @ rotation).float().double())
    renamed = replace(case, labels=(case.labels * 37 + 50) % 101)  # with gaps, in another order
    return {
        "order of images": (case.subset(order), lambda gradient: gradient[order]),
        "names of labels": (renamed, lambda gradient: gradient),
        "rotation of the space": (rotated, lambda gradient: gradient @ rotation),
    }


def check_execution(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on autocast, determinism, calls in flight, inputs and memory."""
    batches = cases.ordinary_batches()
    yield _autocast(subject, batches[0])
    for name, problem in (
        ("determinism", partial(_differs, subject, other=batches[3])),
        ("two calls in flight", partial(_mixes, subject, other=batches[3])),
        ("inputs unchanged", partial(_writes, subject)),
    ):
        yield examine(name, batches[:2], problem)
    yield _memory(subject)


def _autocast(subject: Subject, batch: Case) -> Finding:
    """Compare with what rounding all scores to bfloat16 can make of the formula."""
    full = False

    def problem(case: Case) -> Mismatch | None:
        nonlocal full
        torch.manual_seed(0)
        free = case.embeddings.float().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            value = subject.candidate.value(normalize(free, dim=1), case.labels.clone())
        if value.requires_grad:
            value.backward()
        of_value = partial(subject.reference.answer, case, gradient=False)
        expected = of_value().value
        change = 4 * max(abs(of_value(BFLOAT16_NOISE, seed).value - expected) for seed in SEEDS)
        if found := differing(value.item(), expected, BFLOAT16_FLOOR, lambda: change):
            return found
        if free.grad is None:
            return Mismatch("no gradient reaches the embeddings")
        full = not subject.expected(case, FLOAT32).differing("value", value.item(), expected)
        return None if free.grad.isfinite().all() else Mismatch("the gradient is not finite")

    finding = examine("autocast", [batch], problem, crash="not applicable")
    if finding.result != "passed":
        return finding
    return replace(finding, note=f"in {'full' if full else 'bfloat16'} precision")


def _differs(subject: Subject, case: Case, other: Case) -> Mismatch | None:
    """Return how a second call, after one with another batch, gives another answer."""
    first, _, second = (subject.fresh_answer(each, FLOAT32) for each in (case, other, case))
    if first.value != second.value:
        return Mismatch(f"value {first.value:.9g}, then {second.value:.9g}")
    if first.gradient is None or second.gradient is None:
        return None
    change = float((first.gradient - second.gradient).abs().max())
    return Mismatch(f"the gradient changes by {change:.3g}") if change else None


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
    (gradient,) = torch.autograd.grad(value, free)
    change = float((gradient.double() - expected).abs().max())
    text = f"the gradient changes by {change:.3g} when another batch comes in between"
    return Mismatch(text) if change else None


def _writes(subject: Subject, case: Case) -> Mismatch | None:
    """Return which of its inputs the candidate writes into."""
    unit = normalize(case.embeddings.float(), dim=1).requires_grad_()
    labels, before = case.labels.clone(), unit.detach().clone()
    value = subject.candidate.value(unit, labels)
    if value.requires_grad:
        value.backward()
    if not torch.equal(unit.detach(), before):
        return Mismatch("writes into the embeddings")
    return None if torch.equal(labels, case.labels) else Mismatch("writes into the labels")


def _memory(subject: Subject) -> Finding:
    """Measure how the peak grows with the batch, and what stays after a call."""
    peaks = []
    try:
        for size in MEMORY_SIZES:
            case = cases.in_order(cases.mixed(f"batch of {size}", [4] * (size // 4), 16, 12))
            subject.candidate.answer(case, FLOAT32)  # what is made once does not count
            peak, left = tensor_bytes(partial(subject.candidate.answer, case, FLOAT32))
            peaks.append(peak)
    except Exception as error:
        return Finding("memory", "not applicable", in_words(error))
    small, large = MEMORY_SIZES
    exponent = math.log(peaks[1] / peaks[0]) / math.log(large / small)
    note = f"batch^{exponent:.1f} from batch {small} to {large}"
    if kept := left > 4 * large**2:  # a matrix of scores
        note = f"each call keeps {left / 2**20:.1f} MiB of its {peak / 2**20:.1f} MiB"
    return Finding("memory", "failed" if kept or exponent > LARGEST_EXPONENT else "passed", note)


def tensor_bytes(call: Callable[[], object]) -> tuple[int, int]:
    """Return the most bytes of CPU tensors that ``call`` holds at once, and those it leaves behind.

    Both beyond those before it: exact, and the same on every machine.
    """
    gc.freeze()  # what was there before does not count, and looking through it takes long
    try:
        with profile(profile_memory=True) as recorded:
            call()
            gc.collect()
    finally:
        gc.unfreeze()
    held = peak = 0
    for event in recorded.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak, held


def check_processes(subject: Subject) -> Finding:
    """Return whether a candidate that gathers has the value and gradient of the whole batch.

    Each process gives it half of the batch, and gradients are averaged over processes, as torch's
    DistributedDataParallel does. A candidate that only sees its own half is judged on that half,
    and nothing is said on the whole.
    """
    whole = cases.in_order(cases.mixed("two halves of 4 classes of 2", [4] * 4, 8, 13))
    order = torch.arange(len(whole.labels)).view(-1, PROCESSES).T
    whole, halves = whole.subset(order.reshape(-1)), [whole.subset(rows) for rows in order]
    if subject.reference.random:
        return Finding(SCALING, "not applicable", "random numbers differ between processes")
    answers = _answers(subject, halves)
    if isinstance(answers, Finding):
        return answers
    gradient = torch.cat([answer.gradient for answer in answers if answer.gradient is not None])
    if len(gradient) < len(whole.labels):
        return Finding(SCALING, "failed", "no gradient reaches the embeddings", whole)
    alone = [subject.expected(half, FLOAT32) for half in halves]
    pairs = zip(answers, alone, strict=True)
    if not any(half.differing("value", answer.value) for answer, half in pairs):
        wanted = torch.cat([half.gradient for half in alone if half.gradient is not None])
        loose = max(alone, key=lambda half: half.floor("gradient") + noise(half, "gradient"))
        if found := loose.differing("gradient", gradient, wanted):
            note = f"each process on its own half: {found.text}"
            return Finding(SCALING, "failed", note, halves[0])
        return Finding(SCALING, "not applicable", "each process ranks its own half of the batch")
    expected = subject.expected(whole, FLOAT32)
    value = sum(answer.value for answer in answers) / PROCESSES
    found = expected.differing("value", value)
    if found := found or expected.differing("gradient", gradient / PROCESSES):
        note = f"mean over {PROCESSES} processes: {found.text}"
        return Finding(SCALING, "failed", note, whole)
    return Finding(SCALING, "passed", "mean over processes = one process with the whole batch")


def _answers(subject: Subject, halves: list[Case]) -> list[Answer] | Finding:
    """Return the answer of each process, or why there is none.

    The gradient of a row is the sum over processes of what their losses say of that row; each
    process has only its own rows, so that no summing is left to do.
    """
    named = subject.candidate.source, subject.reference.name, subject.reference.options
    with held_back_from_workers():
        pool = multiprocessing.get_context("spawn").Pool(PROCESSES, leave_interrupts_to_parent)
    with pool, tempfile.TemporaryDirectory() as folder:
        works = [(rank, half, f"{folder}/meeting", *named) for rank, half in enumerate(halves)]
        try:
            found = pool.starmap_async(_work, works, chunksize=1).get(SECONDS)
        except multiprocessing.TimeoutError:
            return Finding(SCALING, "failed", f"no answer within {SECONDS} s in two processes")
    problems = [each for each in found if isinstance(each, Finding)]
    return problems[0] if problems else [each for each in found if isinstance(each, Answer)]


def _work(
    rank: int, half: Case, meeting: str, source: str, loss: str, options: Mapping[str, Any]
) -> Answer | Finding:
    """Answer for one half of the batch, in a process of its own."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=PROCESSES
    )
    distributed.barrier()  # else the first to answer may leave while the other still connects
    try:
        return load(source, loss, options).answer(half, FLOAT32)
    except REFUSALS as error:
        return Finding(SCALING, "not applicable", f"refused in two processes: {in_words(error)}")
    except Exception as error:
        return Finding(SCALING, "failed", f"raised {in_words(error)}")
    finally:
        distributed.destroy_process_group()
