"""The implementation under examination: where it comes from, and how it is called."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.options import build
from benchmark.losses.base import Loss
from benchmark.losses.conformance.cases import Case

ALLOWED = (
    "MODULE:OBJECT, FILE.py:OBJECT or FILE.py of a function of (embeddings, labels), a "
    "torch.nn.Module, or a class that is made without arguments"
)
# Names under which implementations take references, and their labels.
REFERENCE_ARGUMENTS = (("reference_embeddings", "reference_labels"), ("ref_emb", "ref_labels"))
# An implementation says with these that it does not do what it is asked for.
REFUSALS = (ValueError, NotImplementedError, AssertionError, BenchmarkError)


@dataclass(frozen=True)
class Answer:
    """A value and its gradient (B, D) with respect to embeddings before they are normalised.

    What lies along an embedding, which no normalising network sees, does not count there.
    """

    value: float
    gradient: Tensor | None


@dataclass(frozen=True)
class Candidate:
    """A callable of embeddings (B, D) and labels (B,) that returns a loss."""

    source: str
    function: Callable[..., Any]

    @property
    def reference_arguments(self) -> tuple[str, str] | None:
        """The names of the arguments that take references and their labels, None without."""
        function = self.function
        called = function.forward if isinstance(function, nn.Module) else function
        names = set(inspect.signature(called).parameters)
        return next((pair for pair in REFERENCE_ARGUMENTS if names.issuperset(pair)), None)

    def value(self, embeddings: Tensor, labels: Tensor, **references: Tensor | None) -> Tensor:
        """Return the loss as a tensor of one number."""
        return self.function(embeddings, labels, **references).reshape(())

    def answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return value, and gradient of ``factor`` x value, of a batch in ``dtype``."""
        free = case.embeddings.to(dtype, copy=True).requires_grad_()
        references = {}
        if case.references is not None and self.reference_arguments is not None:
            pool = nn.functional.normalize(case.references, dim=1).to(dtype)
            values = (pool, case.reference_labels)
            references = dict(zip(self.reference_arguments, values, strict=True))
        unit = nn.functional.normalize(free, dim=1)
        value = self.value(unit, case.labels.clone(), **references)
        if not value.requires_grad:
            return Answer(value.item(), None)
        (value * factor).backward()
        return Answer(value.item(), None if free.grad is None else free.grad.double())


def load(source: str, name_of_loss: str, options: Mapping[str, Any]) -> Candidate:
    """Return the candidate named MODULE:OBJECT, FILE.py:OBJECT or FILE.py.

    Of several functions and classes of a file the one with the name of the loss is taken. A loss
    class of this suite is made with ``options``. Raises ConfigError for what cannot be imported or
    is no loss.
    """
    try:
        target = _target(source, name_of_loss)
        if inspect.isclass(target) and issubclass(target, Loss):
            target = target(build(target.Config, options, f"loss '{source}'"))
        elif inspect.isclass(target):
            target = target()
    except ConfigError:
        raise
    except Exception as error:
        problem = f"cannot be imported or made: {in_words(error)} (allowed: {ALLOWED})"
        raise ConfigError(source, [problem]) from error
    if not callable(target):
        words = f"is {type(target).__name__}, which cannot be called (allowed: {ALLOWED})"
        raise ConfigError(source, [words])
    return Candidate(source, target)


def _target(source: str, name_of_loss: str) -> Any:
    """Return the function, object or class that ``source`` names."""
    place, _, name = source.partition(":")
    module = _module(place)
    public = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
    if not name and name_of_loss not in public and len(public) != 1:
        listed = ", ".join(sorted(public)) or "none"
        words = f"name one object as {place}:OBJECT (functions and classes: {listed})"
        raise ConfigError(source, [words])
    return attrgetter(name or (name_of_loss if name_of_loss in public else public[0]))(module)


def _module(place: str) -> Any:
    """Return the imported module or file."""
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # a file may import its neighbours, which must not stand in for Python's own modules
    sys.path.append(str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def in_words(error: Exception) -> str:
    """Return an error of an implementation in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
