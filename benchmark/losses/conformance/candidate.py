"""The implementation under examination: where it comes from, and how it is called."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.options import build
from benchmark.losses.base import Loss
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import (
    BFLOAT16,
    Answer,
    Mismatch,
    Reference,
    draws,
    expected,
    mean,
)

ALLOWED = (
    "MODULE:OBJECT, FILE.py:OBJECT or FILE.py of a function of (embeddings, labels), a "
    "torch.nn.Module, or a class that is made without arguments"
)
# Names under which implementations take references, and their labels.
REFERENCE_ARGUMENTS = (("reference_embeddings", "reference_labels"), ("ref_emb", "ref_labels"))
# An implementation says with these that it does not do what it is asked for.
REFUSALS = (ValueError, NotImplementedError, AssertionError, BenchmarkError)


class Candidate:
    """A callable of embeddings (B, D) and labels (B,), and the formula that it is compared with.

    ``reference_arguments`` are the names of its arguments that take references and their labels,
    None without. ``answer(case, dtype)`` is kept: values and gradients are computed one after
    the other.
    """

    def __init__(self, source: str, function: Callable[..., Any], reference: Reference) -> None:
        self.source, self.function, self.reference = source, function, reference
        called = function.forward if isinstance(function, nn.Module) else function
        names = set(inspect.signature(called).parameters)
        taken = (pair for pair in REFERENCE_ARGUMENTS if names.issuperset(pair))
        self.reference_arguments = next(taken, None)
        self.answer = cache(self.fresh_answer)

    def value(self, embeddings: Tensor, labels: Tensor, **references: Tensor | None) -> Tensor:
        """Return the loss as a tensor of one number."""
        return self.function(embeddings, labels, **references).reshape(())

    def call(
        self, case: Case, dtype: torch.dtype, factor: float = 1.0, between: Case | None = None
    ) -> Answer:
        """Return value, and gradient of ``factor`` x value; bfloat16 is float32 with autocast.

        The batch ``between`` goes forward before this one goes backward.
        """
        autocast = dtype == BFLOAT16
        free = case.embeddings.to(torch.float32 if autocast else dtype, copy=True).requires_grad_()
        references = {}
        if case.references is not None and self.reference_arguments is not None:
            pool = nn.functional.normalize(case.references, dim=1).to(free.dtype)
            values = (pool, case.reference_labels)
            references = dict(zip(self.reference_arguments, values, strict=True))
        with torch.autocast("cpu", BFLOAT16, enabled=autocast):
            unit = nn.functional.normalize(free, dim=1)
            value = self.value(unit, case.labels.clone(), **references)
        if between is not None:
            self.value(nn.functional.normalize(between.embeddings.float(), dim=1), between.labels)
        if value.requires_grad:
            (value * factor).backward()
        return Answer(value.item(), None if free.grad is None else free.grad.double())

    def fresh_answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return a call's answer, or the mean of many where the loss is random."""
        call = partial(self.call, case, dtype, factor)
        if self.reference.drawn(dtype):
            return mean(draws(call))
        torch.default_generator.manual_seed(0)  # torch's own seeds GPUs too, and takes 1 ms
        return call()

    def wrong(
        self, part: str, case: Case, dtype: torch.dtype, precision: torch.dtype | None = None
    ) -> Mismatch | None:
        """Return how the "value" or "gradient" differs from the reference's, or None.

        It may differ by what rounding in ``precision`` does, without one in ``dtype``.
        """
        found = getattr(self.answer(case, dtype), part)
        return expected(self.reference, case, precision or dtype).differing(part, found)


def load(source: str, reference: Reference) -> Candidate:
    """Return the candidate named MODULE:OBJECT, FILE.py:OBJECT or FILE.py.

    Of several functions and classes of a file the one with the name of the loss is taken. A loss
    class of this suite is made with the options of the reference. Raises ConfigError for what
    cannot be imported or is no loss.
    """
    place, _, name = source.partition(":")
    try:
        module = _module(place)
        target = attrgetter(name or _only_name(module, place, reference.name))(module)
        if inspect.isclass(target) and issubclass(target, Loss):
            target = target(build(target.Config, reference.options, f"loss '{source}'"))
        elif inspect.isclass(target):
            target = target()
        if not callable(target):
            raise TypeError(f"{type(target).__name__} cannot be called")
        return Candidate(source, target, reference)
    except ConfigError:
        raise
    except Exception as error:
        problem = f"cannot be imported or made: {in_words(error)} (allowed: {ALLOWED})"
        raise ConfigError(source, [problem]) from error


def _module(place: str) -> Any:
    """Return the imported module or file."""
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    # a file may import its neighbours, which must not stand in for Python's own modules
    sys.path.append(str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _only_name(module: Any, place: str, name_of_loss: str) -> str:
    """Return the function or class of the module that has the name of the loss, or the only one."""
    public = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
    if name_of_loss in public or len(public) == 1:
        return name_of_loss if name_of_loss in public else public[0]
    listed = ", ".join(sorted(public)) or "none"
    words = f"name one object as {place}:OBJECT (functions and classes: {listed})"
    raise ConfigError(place, [words])


def in_words(error: Exception) -> str:
    """Return an error of an implementation in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
