"""Checks of an implementation of a ranking loss, on batches that are made for these checks."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import profile
from torch.nn.functional import normalize

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.files import check_regular
from benchmark.core.options import build
from benchmark.losses.base import Loss
from benchmark.losses.conformance.check_outcomes import (
    NEEDED,
    CheckOutcome,
    NoNumberError,
    Result,
    in_words,
    of_error,
)
from benchmark.losses.conformance.formulas import (
    BFLOAT16,
    FLOAT32,
    FLOAT64,
    Answer,
    Case,
    Mismatch,
    Reference,
    draws,
    expected,
    mean,
)
from benchmark.losses.conformance.processes import PROCESSES, SCALING, answers_of_processes

# Scores of one query must differ by more than float32 rounds them, or they may change places.
SMALLEST_GAP = 4e-6
ATTEMPTS = 200
ALLOWED = (
    "MODULE:OBJECT, FILE.py:OBJECT or FILE.py of a function, a torch.nn.Module, or a class that is "
    "made without arguments"
)
# Names under which implementations take references, and their labels.
REFERENCE_ARGUMENTS = (("reference_embeddings", "reference_labels"), ("ref_emb", "ref_labels"))
MEMORY_SIZES = (96, 192)
# The formula taken literally compares all triples: it needs memory of batch^3, and no more.
LARGEST_EXPONENT = 3.3
# The checks in their order: the first without an outcome is the one that does not end.
CHECKS = (
    "values, float64",
    "values, float32",
    "gradients, float64",
    "gradients, float32",
    "factor on the loss",
    "order of images",
    "names of labels",
    "rotation of the space",
    "perfect ranking",
    "unequal classes",
    "classes of one image",
    "one class",
    "ties",
    "duplicates",
    "references",
    "autocast",
    "determinism",
    "two calls in flight",
    "inputs unchanged",
    "memory",
    SCALING,
)
# From a batch to the mismatch of the candidate on it; None without a mismatch.
Problem = Callable[[Case], Mismatch | None]
MOST_TRIALS = 200  # of smaller batches
PLAIN = 1000.0  # times what is allowed


def mixed(name: str, classes: Sequence[int], dim: int, seed: int, *, narrow: bool = False) -> Case:
    """Return classes of these sizes around random directions, in random order.

    The ranking is far from perfect. With ``narrow`` all scores lie near each other, where every
    sigmoid is in its bend. In a large batch some scores are always near each other.
    """
    labels = _labels(classes)
    attempts = ATTEMPTS if len(labels) < 100 else 1
    for attempt in range(attempts):
        generator = torch.Generator().manual_seed(1000 * seed + attempt)
        centers = torch.randn(len(classes), dim, generator=generator)
        rows = centers[labels] + 1.2 * torch.randn(len(labels), dim, generator=generator)
        order = torch.randperm(len(labels), generator=generator)
        if narrow:
            rows = rows + 8.0
        case = Case(name, _rounded(rows[order]), labels[order])
        if _keeps_order(case):
            break
    return case


def in_order(case: Case) -> Case:
    """Return the batch sorted by its labels."""
    return case.subset(case.labels.argsort(stable=True))


def perfect(name: str, classes: Sequence[int]) -> Case:
    """Return classes whose images are equal, and at a right angle to images of other classes."""
    labels = _labels(classes)
    return Case(name, torch.eye(len(classes), dtype=torch.float64)[labels], labels, exact=True)


def lattice(name: str, classes: Sequence[int], seed: int, directions: int = 12) -> Case:
    """Return rows of a few directions, so that rows repeat and most scores are tied.

    The score of every two directions is a multiple of 1/2. Rows repeat within and across classes.
    """
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (directions, 4), generator=generator) - 0.5
    choices = torch.cat([signs.double(), torch.eye(4, dtype=torch.float64)])
    labels = _labels(classes)
    pick = torch.randint(0, len(choices), (len(labels),), generator=generator)
    return Case(name, choices[pick], labels, exact=True)


@cache
def ordinary_batches() -> list[Case]:
    """Return batches that every implementation must take: equal classes, sorted by label."""
    batches = [
        mixed("six classes of four", [4] * 6, 16, 1),
        mixed("scores near each other", [4] * 6, 8, 2, narrow=True),
        mixed("two classes of nine", [9] * 2, 6, 3),
        mixed("thirty pairs", [2] * 30, 32, 4),
        mixed("24 classes of five", [5] * 24, 24, 14),
    ]
    return [in_order(case) for case in batches]


@cache
def unusual_batches() -> dict[str, list[Case]]:
    """Return, by the name of a check, batches that implementations tend to forget."""
    equal = perfect("all images equal", [4] * 3)
    equal = replace(equal, embeddings=equal.embeddings[:1].repeat(12, 1))
    ranked = mixed("6 queries, 24 references", [5] * 6, 10, 11)
    rows = ranked.embeddings
    labels = ranked.labels
    return {
        "perfect ranking": [
            perfect("six perfect classes of four", [4] * 6),
            perfect("96 perfect classes of four", [4] * 96),
        ],
        "unequal classes": [
            mixed("classes of 7, 5, 4 and 2", [7, 5, 4, 2], 12, 5),
            mixed("classes of 20, 3 and 2", [20, 3, 2], 10, 6, narrow=True),
        ],
        "classes of one image": [
            mixed("classes of 4, 3, 1, 1 and 1", [4, 3, 1, 1, 1], 8, 7),
            mixed("one pair among ten", [2] + [1] * 8, 6, 8, narrow=True),
        ],
        "one class": [
            mixed("eight images of one class", [8], 8, 9),
            mixed("two images of one class", [2], 4, 10),
        ],
        "ties": [lattice("tied scores", [4] * 3, seed, 6) for seed in (1, 2, 3)],
        "duplicates": [*(lattice("repeated images", [4] * 4, seed, 0) for seed in (4, 5)), equal],
        "references": [Case(ranked.name, rows[:6], labels[:6], rows[6:], labels[6:])],
    }


def _labels(classes: Sequence[int]) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes))


def _rounded(rows: Tensor) -> Tensor:
    return normalize(rows, dim=1).float().double()


def _keeps_order(case: Case) -> bool:
    """Return whether rounding keeps the order of the scores of every query."""
    unit = normalize(case.embeddings, dim=1)
    return bool((unit @ unit.T).sort(1).values.diff(dim=1).min() > SMALLEST_GAP)


class LossUnderTest:
    """A callable of embeddings (B, D) and labels (B,), and the formula that it is compared with.

    ``reference_arguments`` are the names of its arguments for references and their labels; None if
    it takes no references. ``answer(case, dtype)`` is kept, because the checks of values and of
    gradients share it.
    """

    def __init__(self, source: str, function: Callable[..., Any], reference: Reference) -> None:
        self.source = source
        self.function = function
        self.reference = reference
        called = function.forward if isinstance(function, nn.Module) else function
        names = set(inspect.signature(called).parameters)
        taken = (pair for pair in REFERENCE_ARGUMENTS if names.issuperset(pair))
        self.reference_arguments = next(taken, None)
        self.answer = cache(self.fresh_answer)

    def call(
        self, case: Case, dtype: torch.dtype, factor: float = 1.0, between: Case | None = None
    ) -> Answer:
        """Return the value, and the gradient of ``factor`` x value.

        ``dtype`` bfloat16 means float32 with autocast. The batch ``between`` goes forward after
        this batch has gone forward, and before it goes backward.
        """
        autocast = dtype == BFLOAT16
        precision = torch.float32 if autocast else dtype
        free = case.embeddings.to(precision, copy=True).requires_grad_()
        references = {}
        if case.references is not None and self.reference_arguments is not None:
            pool = normalize(case.references, dim=1).to(free.dtype)
            values = (pool, case.reference_labels)
            references = dict(zip(self.reference_arguments, values, strict=True))
        with torch.autocast("cpu", BFLOAT16, enabled=autocast):
            unit = normalize(free, dim=1)
            value = self.value(unit, case.labels.clone(), **references)
        if between is not None:
            self.function(normalize(between.embeddings.float(), dim=1), between.labels)
        if value.requires_grad:
            (value * factor).backward()
        gradient = None if free.grad is None else free.grad.double()
        return Answer(value.item(), gradient)

    def value(self, *batch: Tensor, **references: Any) -> Tensor:
        """Return what the candidate returns; raise NoNumberError unless it is one number."""
        value = self.function(*batch, **references)
        if isinstance(value, Tensor):
            if value.numel() == 1:
                return value.reshape(())
            raise NoNumberError(f"returned a tensor of shape {tuple(value.shape)}{NEEDED}")
        raise NoNumberError(f"returned a {type(value).__name__}{NEEDED}")

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return the answer of a call, or the mean of many calls if the loss is random."""
        call = partial(self.call, case, dtype, factor)
        if self.reference.drawn(dtype):
            return mean(draws(call))
        torch.default_generator.manual_seed(0)  # torch's own seeds GPUs too, and takes 1 ms
        return call()

    def wrong(
        self, part: str, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the "value" or "gradient" differs from the reference's, or None.

        It may differ by what rounding in ``precision`` changes, by default ``dtype``.
        """
        given = getattr(self.answer(case, dtype), part)
        return expected(self.reference, case, precision or dtype).differing(part, given)

    def all_wrong(self, case: Case) -> Mismatch | None:
        """Return how the value, or else the gradient, differs in float32, or None."""
        mismatches = (self.wrong(part, case, FLOAT32) for part in ("value", "gradient"))
        return next(filter(None, mismatches), None)

    def small_enough(self, batches: Sequence[Case]) -> list[Case]:
        """Return all batches, or if the loss is random those that can be drawn many times."""
        random = self.reference.drawn(FLOAT32)
        return [case for case in batches if len(case.labels) < 64 or not random]


def load(source: str, reference: Reference) -> LossUnderTest:
    """Return the candidate named MODULE:OBJECT, FILE.py:OBJECT or FILE.py.

    Of several functions and classes in a file, the one with the name of the loss is taken. A loss
    class of this suite is made with the options of the reference. Raise ConfigError for what
    cannot be imported or is not a loss.
    """
    location, _, name = source.partition(":")
    try:
        if location.endswith(".py"):
            path = Path(location)
            check_regular(path)
            spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            # a file may import its neighbours, which must not stand in for Python's own modules
            sys.path.append(str(path.resolve().parent))
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(location)
        public = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
            and value.__module__ == module.__name__
        ]
        if not name and reference.name in public:
            name = reference.name
        elif not name and len(public) != 1:
            listed = ", ".join(sorted(public)) or "none"
            message = f"name one object as {location}:OBJECT (functions and classes: {listed})"
            raise ConfigError(location, [message])
        target = attrgetter(name or public[0])(module)
        if inspect.isclass(target) and issubclass(target, Loss):
            target = target(build(target.Config, reference.options, f"loss '{source}'"))
        elif inspect.isclass(target):
            target = target()
        if not callable(target):
            raise TypeError(f"{type(target).__name__} cannot be called")
        return LossUnderTest(source, target, reference)
    except BenchmarkError:
        raise
    except Exception as error:
        problem = f"cannot be imported or made: {in_words(error)} (allowed: {ALLOWED})"
        raise ConfigError(source, [problem]) from error


def examine(
    check: str, cases: Sequence[Case], problem: Problem, crash: Result = "failed"
) -> CheckOutcome:
    """Return "passed" if ``problem`` finds nothing wrong with any case, else what it finds first.

    ``crash`` is the result of an exception that is not one of ``REFUSALS``.
    """
    for case in cases:
        try:
            mismatch = problem(case)
        except Exception as error:
            return of_error(check, case, error, crash)
        if mismatch is not None:
            smallest, there = shrink(case, problem, mismatch)
            note = f"{case.name}: {mismatch.text}"
            if smallest is not case:
                rows = f"{len(smallest.labels)} of its {len(case.labels)} rows"
                note += f"\n  on {rows}: {there.text}"
            return CheckOutcome(check, "failed", note, smallest)
    return CheckOutcome(check, "passed")


def shrink(case: Case, problem: Problem, mismatch: Mismatch) -> tuple[Case, Mismatch]:
    """Return the smallest batch on which the problem is still plain, and its mismatch there.

    The kind of the mistake stays: a wrong number does not become NaN. First rows are left out, then
    dimensions.
    """
    trials = 0
    plain = min(PLAIN, mismatch.times)

    def still_plain(smaller: Case) -> bool:
        nonlocal trials, case, mismatch
        trials += 1
        if not smaller.has_positive or trials > MOST_TRIALS:
            return False
        try:
            again = problem(smaller)
        except Exception:
            return False
        if again is None or again.kind != mismatch.kind or again.times < plain:
            return False
        case = smaller
        mismatch = again
        return True

    step = len(case.labels) // 2
    while step:
        start = 0
        while start < len(case.labels):
            rows = range(len(case.labels))
            if not still_plain(case.subset([*rows[:start], *rows[start + step :]])):
                start += step
        step //= 2
    if not case.exact and case.references is None:
        for dim in range(2, case.embeddings.shape[1]):
            narrow = replace(case, embeddings=_rounded(case.embeddings[:, :dim]))
            if _keeps_order(narrow) and still_plain(narrow):
                break
    return case, mismatch


def findings(source: str, reference: Reference, processes: bool) -> Iterator[CheckOutcome | None]:
    """Yield None when the candidate is loaded, then the outcome of each check."""
    candidate = load(source, reference)
    yield None
    yield from all_findings(candidate, processes)


def all_findings(candidate: LossUnderTest, processes: bool) -> Iterator[CheckOutcome]:
    """Yield the outcome of each check; without ``processes`` no process is started."""
    for check in (check_agreement, check_invariances, check_unusual, check_execution, check_memory):
        yield from check(candidate)
    if processes:
        yield check_processes(candidate)


def check_agreement(candidate: LossUnderTest) -> Iterator[CheckOutcome]:
    """Yield whether values and gradients equal those of the formula."""
    batches = candidate.small_enough(ordinary_batches())
    for part in ("value", "gradient"):
        wrong = partial(candidate.wrong, part)
        exactly = partial(wrong, dtype=FLOAT64)
        finding = examine(f"{part}s, float64", batches, exactly, crash="not applicable")
        if finding.result == "failed":
            roughly = partial(wrong, dtype=FLOAT64, precision=FLOAT32)
            rough = examine(finding.check, batches, roughly)
            finding = rough if rough.case else replace(rough, note="to float32 precision only")
        yield finding
        finding = examine(f"{part}s, float32", batches, partial(wrong, dtype=FLOAT32))
        if finding.result == "not applicable":  # a loss must take equal classes
            finding = replace(finding, result="failed")
        yield finding

    def wrong_factor(case: Case) -> Mismatch | None:
        right = expected(candidate.reference, case, FLOAT32)
        if right.answer.gradient is None:
            return None
        gradient = candidate.fresh_answer(case, FLOAT32, factor=-3.0).gradient
        mismatch = right.differing("gradient", gradient, -3.0 * right.answer.gradient, 3.0)
        return mismatch and replace(mismatch, text=f"of -3 x loss: {mismatch.text}")

    if hasattr(candidate.reference.config, "lambda_val"):
        note = "the gradient is a difference quotient, which a factor may change"
        yield CheckOutcome("factor on the loss", "not applicable", note)
    else:
        yield examine("factor on the loss", batches[:2], wrong_factor)


def check_invariances(candidate: LossUnderTest) -> Iterator[CheckOutcome]:
    """Yield whether order, names of labels and rotation leave values and gradients as they are."""

    def changed(case: Case, name: str) -> Mismatch | None:
        dim = case.embeddings.shape[1]
        order = torch.randperm(len(case.labels), generator=torch.Generator().manual_seed(0))
        normal = torch.randn(dim, dim, generator=torch.Generator().manual_seed(0))
        rotation = torch.linalg.qr(normal.double()).Q
        # another batch, and what becomes of the gradient of this one (B, D)
        other, moved = {
            "order of images": (case.subset(order), lambda gradient: gradient[order]),
            "names of labels": (  # with gaps, in another order
                replace(case, labels=(case.labels * 37 + 50) % 101),
                lambda gradient: gradient,
            ),
            "rotation of the space": (
                replace(case, embeddings=(case.embeddings @ rotation).float().double()),
                lambda gradient: gradient @ rotation,
            ),
        }[name]
        before = candidate.answer(case, FLOAT32)
        after = candidate.answer(other, FLOAT32)
        right = expected(candidate.reference, case, FLOAT32)
        mismatch = right.differing("value", after.value, before.value, 2.0)
        if mismatch is None and before.gradient is not None:
            mismatch = right.differing("gradient", after.gradient, moved(before.gradient), 2.0)
        return mismatch

    for name in ("order of images", "names of labels", "rotation of the space"):
        problem = partial(changed, name=name)
        finding = examine(name, ordinary_batches()[:2], problem)
        if finding.result == "passed":
            other = examine(name, unusual_batches()["unequal classes"][:1], problem)
            finding = finding if other.result == "not applicable" else other
        yield finding


def check_unusual(candidate: LossUnderTest) -> Iterator[CheckOutcome]:
    """Yield the findings on perfect rankings, unusual classes, ties and references."""
    for name, batches in unusual_batches().items():
        if name == "references" and candidate.reference_arguments is None:
            yield CheckOutcome(name, "not applicable", "takes embeddings and labels only")
        else:
            yield examine(name, candidate.small_enough(batches), candidate.all_wrong)


def check_execution(candidate: LossUnderTest) -> Iterator[CheckOutcome]:
    """Yield the findings on autocast, determinism, calls in flight and inputs."""
    first, second, _, other, _ = ordinary_batches()

    def autocast(case: Case) -> Mismatch | None:  # what rounding all scores makes of the formula
        if mismatch := candidate.wrong("value", case, BFLOAT16):
            return mismatch
        gradient = candidate.answer(case, BFLOAT16).gradient
        if gradient is None:
            return Mismatch("no gradient reaches the embeddings")
        return None if gradient.isfinite().all() else Mismatch("the gradient is not finite")

    def moved(before: Answer, after: Answer, when: str = "") -> Mismatch | None:
        one = before.gradient
        two = after.gradient
        if one is None or two is None or torch.equal(one, two):
            return None
        return Mismatch(f"the gradient changes by {float((one - two).abs().max()):.3g}{when}")

    def differs(case: Case) -> Mismatch | None:
        batches = (case, other, case)
        before, _, after = (candidate.fresh_answer(batch, FLOAT32) for batch in batches)
        if before.value != after.value:
            return Mismatch(f"value {before.value:.9g}, then {after.value:.9g}")
        return moved(before, after)

    def mixes(case: Case) -> Mismatch | None:
        answers = []
        for between in (None, other):
            torch.manual_seed(0)
            answers.append(candidate.call(case, FLOAT32, between=between))
        return moved(answers[0], answers[1], " when another batch comes in between")

    def writes(case: Case) -> Mismatch | None:
        unit = normalize(case.embeddings.float(), dim=1).requires_grad_()
        labels = case.labels.clone()
        before = unit.detach().clone()
        value = candidate.value(unit, labels)
        if value.requires_grad:
            value.backward()
        if not torch.equal(unit.detach(), before):
            return Mismatch("writes into the embeddings")
        return None if torch.equal(labels, case.labels) else Mismatch("writes into the labels")

    finding = examine("autocast", [first], autocast, crash="not applicable")
    if finding.result == "passed":
        rounded = candidate.wrong("value", first, BFLOAT16, FLOAT32)
        precision = "bfloat16" if rounded else "full"
        finding = replace(finding, note=f"in {precision} precision")
    yield finding
    yield examine("determinism", [first, second], differs)
    yield examine("two calls in flight", [first, second], mixes)
    yield examine("inputs unchanged", [first, second], writes)


def check_memory(candidate: LossUnderTest) -> Iterator[CheckOutcome]:
    """Yield how the peak of memory grows with the batch, and whether a call keeps any memory."""
    peaks = []
    try:
        for size in MEMORY_SIZES:
            case = in_order(mixed(f"batch of {size}", [4] * (size // 4), 16, 12))
            candidate.call(case, FLOAT32)  # what is made once does not count
            peak, left = tensor_bytes(partial(candidate.call, case, FLOAT32))
            peaks.append(peak)
    except Exception as error:
        yield CheckOutcome("memory", "not applicable", in_words(error))
        return
    small, large = MEMORY_SIZES
    exponent = math.log(peaks[1] / peaks[0]) / math.log(large / small)
    note = f"batch^{exponent:.1f} from batch {small} to {large}"
    keeps = left > 4 * large**2  # a matrix of scores
    if keeps:
        note = f"each call keeps {left / 2**20:.1f} MiB of its {peak / 2**20:.1f} MiB"
    if keeps or exponent > LARGEST_EXPONENT:
        yield CheckOutcome("memory", "failed", note)
    else:
        yield CheckOutcome("memory", "passed", note)


def tensor_bytes(call: Callable[[], object]) -> tuple[int, int]:
    """Return the most bytes of CPU tensors that ``call`` holds at once, and the bytes it keeps.

    Tensors from before the call do not count. The numbers are exact, the same on every machine.
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


def check_processes(candidate: LossUnderTest) -> CheckOutcome:
    """Return whether a candidate that gathers has the value and gradient of the whole batch.

    Each of two processes gives it one half of the batch. Gradients are averaged over the processes,
    as torch's DistributedDataParallel does. A candidate that sees only its own half is judged on
    that half, and nothing is said about the whole batch.
    """
    if candidate.reference.drawn(FLOAT32):
        return CheckOutcome(SCALING, "not applicable", "random numbers differ between processes")
    whole = in_order(mixed("two halves of 4 classes of 2", [4] * 4, 8, 13))
    order = torch.arange(len(whole.labels)).view(-1, PROCESSES).T
    halves = [whole.subset(rows) for rows in order]
    whole = whole.subset(order.reshape(-1))
    reference = replace(candidate.reference)  # without what it keeps, which no process can receive
    answers = answers_of_processes(_answer, halves, candidate.source, reference)
    if isinstance(answers, CheckOutcome):
        return answers
    of_halves = [expected(candidate.reference, half, FLOAT32) for half in halves]
    of_whole = expected(candidate.reference, whole, FLOAT32)
    pairs = list(zip(answers, of_halves, strict=True))
    if not any(half.differing("value", answer.value) for answer, half in pairs):
        for answer, half in pairs:
            if mismatch := half.differing("gradient", answer.gradient):
                note = f"each process on its own half: {mismatch.text}"
                return CheckOutcome(SCALING, "failed", note, half.case)
        note = "each process ranks its own half of the batch"
        return CheckOutcome(SCALING, "not applicable", note)
    # each process has the gradients of its own rows only, so that no summing is left to do
    mismatch = of_whole.differing("value", sum(answer.value for answer in answers) / PROCESSES)
    gradients = [answer.gradient for answer in answers if answer.gradient is not None]
    complete = torch.cat(gradients) / PROCESSES if len(gradients) == PROCESSES else None
    if mismatch := mismatch or of_whole.differing("gradient", complete):
        note = f"mean over {PROCESSES} processes: {mismatch.text}"
        return CheckOutcome(SCALING, "failed", note, whole)
    return CheckOutcome(SCALING, "passed", "mean over processes = one process with the whole batch")


def _answer(half: Case, source: str, reference: Reference) -> Answer:
    return load(source, reference).call(half, FLOAT32)
