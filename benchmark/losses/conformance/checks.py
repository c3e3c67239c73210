"""What an implementation of a ranking loss has to do on batches made for the purpose."""

from __future__ import annotations

import gc
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor, distributed, multiprocessing
from torch.autograd.profiler import profile
from torch.nn.functional import normalize

from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent
from benchmark.losses.conformance import cases
from benchmark.losses.conformance.candidate import REFUSALS, Candidate, in_words, load
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import (
    BFLOAT16,
    FLOAT32,
    FLOAT64,
    Answer,
    Mismatch,
    Reference,
    expected,
)

MEMORY_SIZES = (96, 192)
# The formula taken literally compares all triples: memory of batch^3 and no more.
LARGEST_EXPONENT = 3.3
SCALING, PROCESSES, SECONDS = "scaling over processes", 2, 120
Result = Literal["passed", "failed", "not applicable"]
# From a batch to what is wrong with the candidate on it, None when nothing is.
Problem = Callable[[Case], Mismatch | None]
TENSORS = ("embeddings", "labels", "references", "reference_labels")  # of a case
MOST_TRIALS = 200  # of smaller batches
PLAIN = 1000.0  # times what is allowed


@dataclass(frozen=True)
class Finding:
    """The result of a check in words, and the smallest batch that fails."""

    check: str
    result: Result
    note: str = ""
    case: Case | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        plain: dict[str, Any] = {"check": self.check, "result": self.result, "note": self.note}
        if self.case is not None:
            values = [(name, getattr(self.case, name)) for name in TENSORS]
            plain["case"] = {name: None if x is None else x.tolist() for name, x in values}
        return plain

    def shown_case(self, most: int = 12) -> str:
        """Return the batch as Python reads it, its first rows when it is large; "" without one."""
        lines = []
        for name in TENSORS:
            values = getattr(self.case, name, None)
            if values is not None and values.ndim == 1:
                lines.append(f"  {name} = {values.tolist()}")
            elif values is not None:
                rows = [[f"{value:.5g}" for value in row] for row in values[:most].tolist()]
                lines.append(f"  {name} = [  # {len(values)} rows, {values.shape[1]} dimensions")
                lines += [f"    [{', '.join(row)}]," for row in rows]
                lines += ["    ...  # all rows are in the JSON"] * (len(values) > most) + ["  ]"]
        return "\n".join(lines)


def examine(
    check: str, cases: Sequence[Case], problem: Problem, crash: Result = "failed"
) -> Finding:
    """Return whether ``problem`` finds nothing on any of the cases.

    ``crash`` is the result of an exception that does not decline a batch in words.
    """
    for case in cases:
        try:
            found = problem(case)
        except Exception as error:
            return of_error(check, case, error, crash)
        if found is not None:
            smallest, found = shrink(case, problem, found)
            return Finding(check, "failed", f"{case.name}: {found.text}", smallest)
    return Finding(check, "passed")


def of_error(check: str, case: Case, error: Exception, crash: Result = "failed") -> Finding:
    """Return what an exception says: the candidate refuses the batch, or it crashes."""
    if isinstance(error, REFUSALS):
        return Finding(check, "not applicable", f"refused: {in_words(error)}")
    note = f"{case.name}: raised {in_words(error)}"
    return Finding(check, crash, note, case if crash == "failed" else None)


def shrink(case: Case, problem: Problem, found: Mismatch) -> tuple[Case, Mismatch]:
    """Return the smallest batch on which the problem still is plain, and what is wrong there.

    Rows are left out first, then dimensions.
    """
    trials, plain = 0, min(PLAIN, found.times)

    def still_plain(smaller: Case | None) -> bool:
        nonlocal trials, case, found
        trials += 1
        if smaller is None or not smaller.has_positive or trials > MOST_TRIALS:
            return False
        try:
            again = problem(smaller)
        except Exception:
            return False
        if again is None or again.times < plain:
            return False
        case, found = smaller, again
        return True

    step = len(case.labels) // 2
    while step:
        start = 0
        while start < len(case.labels):
            rows = range(len(case.labels))
            if not still_plain(case.subset([*rows[:start], *rows[start + step :]])):
                start += step
        step //= 2
    any(still_plain(case.narrowed(dim)) for dim in range(2, case.embeddings.shape[1]))
    return case, found


def all_findings(candidate: Candidate, processes: bool) -> Iterator[Finding]:
    """Yield what each check finds; without ``processes`` none are started."""
    for check in (check_agreement, check_invariances, check_unusual, check_execution):
        yield from check(candidate)
    if processes:
        yield check_processes(candidate)


def check_agreement(candidate: Candidate) -> Iterator[Finding]:
    """Yield whether values and gradients are those of the formula."""
    batches = _small_if_random(candidate, cases.ordinary_batches())
    for part in ("value", "gradient"):
        exactly, roughly, single = (
            partial(candidate.wrong, part, dtype=dtype, precision=precision)
            for dtype, precision in ((FLOAT64, FLOAT64), (FLOAT64, FLOAT32), (FLOAT32, FLOAT32))
        )
        finding = examine(f"{part}s, float64", batches, exactly, crash="not applicable")
        if finding.result == "failed":
            rough = examine(finding.check, batches, roughly)
            finding = rough if rough.case else replace(rough, note="to float32 precision only")
        yield finding
        finding = examine(f"{part}s, float32", batches, single)
        refused = finding.result == "not applicable"  # which equal classes may not be
        yield replace(finding, result="failed") if refused else finding
    if hasattr(candidate.reference.config, "lambda_val"):
        note = "the gradient is a difference quotient, which a factor may change"
        yield Finding("factor on the loss", "not applicable", note)
    else:
        yield examine("factor on the loss", batches[:2], partial(_wrong_factor, candidate))


def check_invariances(candidate: Candidate) -> Iterator[Finding]:
    """Yield whether order, names of labels and rotation leave values and gradients as they are."""
    equal, mixed = cases.ordinary_batches()[:2], cases.unusual_batches()["unequal classes"][:1]
    for name in ("order of images", "names of labels", "rotation of the space"):
        problem = partial(_changed, candidate, name=name)
        finding = examine(name, equal, problem)
        if finding.result == "passed":
            other = examine(name, mixed, problem)
            finding = finding if other.result == "not applicable" else other
        yield finding


def check_unusual(candidate: Candidate) -> Iterator[Finding]:
    """Yield the findings on perfect rankings, unusual classes, ties and references."""

    def wrong(case: Case) -> Mismatch | None:
        parts = (candidate.wrong(part, case, FLOAT32) for part in ("value", "gradient"))
        return next(filter(None, parts), None)

    for name, batches in cases.unusual_batches().items():
        yield examine(name, _small_if_random(candidate, batches), wrong)
    if candidate.reference_arguments is None:
        yield Finding("references", "not applicable", "takes embeddings and labels only")
    else:
        yield examine("references", [cases.with_references()], wrong)


def _small_if_random(candidate: Candidate, batches: list[Case]) -> list[Case]:
    """Return the batches that are small enough to be drawn many times, if they have to be."""
    random = candidate.reference.drawn(FLOAT32)
    return [case for case in batches if len(case.labels) < 64 or not random]


def _wrong_factor(candidate: Candidate, case: Case) -> Mismatch | None:
    """Return how the gradient of -3 x loss is not -3 x the gradient."""
    right = expected(candidate.reference, case, FLOAT32)
    if right.answer.gradient is None:
        return None
    gradient = candidate.fresh_answer(case, FLOAT32, factor=-3.0).gradient
    found = right.differing("gradient", gradient, -3.0 * right.answer.gradient, 3.0)
    return found and replace(found, text=f"of -3 x loss: {found.text}")


def _changed(candidate: Candidate, case: Case, name: str) -> Mismatch | None:
    """Return how the candidate's answer changes with a transformation that should leave it."""
    other, moved = _transformed(case)[name]
    before, after = candidate.answer(case, FLOAT32), candidate.answer(other, FLOAT32)
    right = expected(candidate.reference, case, FLOAT32)
    found = right.differing("value", after.value, before.value, 2.0)
    if found is None and before.gradient is not None:
        found = right.differing("gradient", after.gradient, moved(before.gradient), 2.0)
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


def check_execution(candidate: Candidate) -> Iterator[Finding]:
    """Yield the findings on autocast, determinism, calls in flight, inputs and memory."""
    first, second, _, other, _ = cases.ordinary_batches()
    finding = examine("autocast", [first], partial(_autocast, candidate), crash="not applicable")
    if finding.result == "passed":
        rounded = candidate.wrong("value", first, BFLOAT16, FLOAT32)
        finding = replace(finding, note=f"in {'bfloat16' if rounded else 'full'} precision")
    yield finding
    yield examine("determinism", [first, second], partial(_differs, candidate, other=other))
    yield examine("two calls in flight", [first, second], partial(_mixes, candidate, other=other))
    yield examine("inputs unchanged", [first, second], partial(_writes, candidate))
    yield _memory(candidate)


def _autocast(candidate: Candidate, case: Case) -> Mismatch | None:
    """Compare with what rounding all scores to bfloat16 can make of the formula."""
    if found := candidate.wrong("value", case, BFLOAT16):
        return found
    gradient = candidate.answer(case, BFLOAT16).gradient
    if gradient is None:
        return Mismatch("no gradient reaches the embeddings")
    return None if gradient.isfinite().all() else Mismatch("the gradient is not finite")


def _differs(candidate: Candidate, case: Case, other: Case) -> Mismatch | None:
    """Return how a second call, after one with another batch, gives another answer."""
    first, _, second = (candidate.fresh_answer(each, FLOAT32) for each in (case, other, case))
    if first.value != second.value:
        return Mismatch(f"value {first.value:.9g}, then {second.value:.9g}")
    return _moved(first.gradient, second.gradient, "")


def _mixes(candidate: Candidate, case: Case, other: Case) -> Mismatch | None:
    """Return how a gradient changes when another batch goes forward before it goes backward."""
    torch.manual_seed(0)
    first = candidate.call(case, FLOAT32)
    torch.manual_seed(0)
    second = candidate.call(case, FLOAT32, between=other)
    return _moved(first.gradient, second.gradient, " when another batch comes in between")


def _moved(first: Tensor | None, second: Tensor | None, when: str) -> Mismatch | None:
    if first is None or second is None or torch.equal(first, second):
        return None
    change = float((first - second).abs().max())
    return Mismatch(f"the gradient changes by {change:.3g}{when}")


def _writes(candidate: Candidate, case: Case) -> Mismatch | None:
    """Return which of its inputs the candidate writes into."""
    unit = normalize(case.embeddings.float(), dim=1).requires_grad_()
    labels, before = case.labels.clone(), unit.detach().clone()
    value = candidate.value(unit, labels)
    if value.requires_grad:
        value.backward()
    if not torch.equal(unit.detach(), before):
        return Mismatch("writes into the embeddings")
    return None if torch.equal(labels, case.labels) else Mismatch("writes into the labels")


def _memory(candidate: Candidate) -> Finding:
    """Measure how the peak grows with the batch, and what stays after a call."""
    peaks = []
    try:
        for size in MEMORY_SIZES:
            case = cases.in_order(cases.mixed(f"batch of {size}", [4] * (size // 4), 16, 12))
            candidate.call(case, FLOAT32)  # what is made once does not count
            peak, left = tensor_bytes(partial(candidate.call, case, FLOAT32))
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
    events = recorded.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    held = list(accumulate(sizes, initial=0))
    return max(held), held[-1]


def check_processes(candidate: Candidate) -> Finding:
    """Return whether a candidate that gathers has the value and gradient of the whole batch.

    Each process gives it half of the batch, and gradients are averaged over processes, as torch's
    DistributedDataParallel does. A candidate that only sees its own half is judged on that half,
    and nothing is said on the whole.
    """
    if candidate.reference.drawn(FLOAT32):
        return Finding(SCALING, "not applicable", "random numbers differ between processes")
    whole = cases.in_order(cases.mixed("two halves of 4 classes of 2", [4] * 4, 8, 13))
    order = torch.arange(len(whole.labels)).view(-1, PROCESSES).T
    whole, halves = whole.subset(order.reshape(-1)), [whole.subset(rows) for rows in order]
    with held_back_from_workers():
        pool = multiprocessing.get_context("spawn").Pool(PROCESSES, leave_interrupts_to_parent)
    with pool, tempfile.TemporaryDirectory() as folder:
        named = f"file://{folder}/meeting", candidate.source, candidate.reference
        works = [(rank, half, *named) for rank, half in enumerate(halves)]
        try:
            given = pool.starmap_async(_work, works, chunksize=1).get(SECONDS)
        except multiprocessing.TimeoutError:
            return Finding(SCALING, "failed", f"no answer within {SECONDS} s in two processes")
    for each in given:
        if isinstance(each, Finding):
            return each
    answers = [each for each in given if isinstance(each, Answer)]
    right = [expected(candidate.reference, each, FLOAT32) for each in (*halves, whole)]
    pairs = list(zip(answers, right[:-1], strict=True))
    if not any(half.differing("value", answer.value) for answer, half in pairs):
        for answer, half in pairs:
            if found := half.differing("gradient", answer.gradient):
                note = f"each process on its own half: {found.text}"
                return Finding(SCALING, "failed", note, half.case)
        return Finding(SCALING, "not applicable", "each process ranks its own half of the batch")
    # each process has the gradients of its own rows only, so that no summing is left to do
    found = right[-1].differing("value", sum(answer.value for answer in answers) / PROCESSES)
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    complete = torch.cat(gradients) / PROCESSES if len(gradients) == PROCESSES else None
    if found := found or right[-1].differing("gradient", complete):
        note = f"mean over {PROCESSES} processes: {found.text}"
        return Finding(SCALING, "failed", note, whole)
    return Finding(SCALING, "passed", "mean over processes = one process with the whole batch")


def _work(
    rank: int, half: Case, meeting: str, source: str, reference: Reference
) -> Answer | Finding:
    """Answer for one half of the batch, in a process of its own."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=PROCESSES)
    distributed.barrier()  # else the first to answer may leave while the other still connects
    try:
        return load(source, reference).call(half, FLOAT32)
    except Exception as error:
        return of_error(SCALING, half, error)
    finally:
        distributed.destroy_process_group()
