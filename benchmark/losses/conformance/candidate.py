"""The implementation under examination: where it comes from, and how it is called."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.options import build
from benchmark.core.plugin_errors import in_words
from benchmark.losses.base import Loss
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import Answer
from benchmark.losses.settings import ChangedSettingError, settings_kept

ALLOWED = (
    "a function of (embeddings, labels), a torch.nn.Module, or a class that is made without "
    "arguments and whose objects are called with (embeddings, labels)"
)
# Names under which implementations take references, and their labels.
REFERENCE_ARGUMENTS = (("reference_embeddings", "reference_labels"), ("ref_emb", "ref_labels"))
# An implementation says with these that it does not do what it is asked for.
REFUSALS = (ValueError, NotImplementedError, AssertionError, BenchmarkError)


class WrongResultError(Exception):
    """An implementation returned what no loss may return."""


@dataclass(frozen=True)
class Candidate:
    """A callable of embeddings (B, D) and labels (B,) that returns a loss."""

    source: str
    function: Callable[..., Any]

    @property
    def reference_arguments(self) -> tuple[str, str] | None:
        """The names of the arguments that take references and their labels, None without."""
        try:
            names = inspect.signature(_called(self.function)).parameters
        except Exception:  # written in C, or of its own making
            return None
        return next((pair for pair in REFERENCE_ARGUMENTS if set(pair) <= set(names)), None)

    def value(self, embeddings: Tensor, labels: Tensor, **references: Tensor | None) -> Tensor:
        """Return the loss as a tensor of one number; raise WrongResultError for anything else."""
        with settings_kept():
            result = self.function(embeddings, labels, **references)
        if not isinstance(result, Tensor):
            raise WrongResultError(f"returned {type(result).__name__}, not a tensor of one number")
        if result.numel() != 1 or not result.is_floating_point():
            shape = tuple(result.shape)
            raise WrongResultError(
                f"returned {result.dtype} {shape}, not one floating-point number"
            )
        return result.reshape(())

    def answer(self, case: Case, dtype: torch.dtype, factor: float = 1.0) -> Answer:
        """Return value, and gradient of ``factor`` x value, of a batch in ``dtype``.

        The gradient is with respect to embeddings before they are normalised, so that what lies
        along an embedding, which no normalising network sees, does not count. None: no gradient.
        """
        free = case.embeddings.to(dtype, copy=True).requires_grad_()
        unit = nn.functional.normalize(free, dim=1)
        references = {}
        if case.references is not None and self.reference_arguments is not None:
            values = (case.pool().to(dtype), case.reference_labels)
            references = dict(zip(self.reference_arguments, values, strict=True))
        value = self.value(unit, case.labels.clone(), **references)
        gradient = None
        if value.requires_grad:
            (value * factor).backward()
            gradient = None if free.grad is None else free.grad.double()
        return Answer(value.item(), gradient)


def load(source: str, name_of_loss: str, options: Mapping[str, Any]) -> Candidate:
    """Return the candidate named MODULE:OBJECT, FILE.py:OBJECT or FILE.py.

    Of several functions and classes of a file the one with the name of the loss is taken. A loss
    class of this suite is made with ``options``. Raises ConfigError for what cannot be
    imported or is no loss.
    """
    try:
        with settings_kept():
            return _load(source, name_of_loss, options)
    except ConfigError:
        raise
    except ChangedSettingError as error:
        raise _error(source, str(error)) from error
    except Exception as error:  # attributes, too, may be of the implementation's own making
        raise _error(source, f"cannot be looked at: {in_words(error)}") from error


def _load(source: str, name_of_loss: str, options: Mapping[str, Any]) -> Candidate:
    place, _, name = source.rpartition(":") if _has_object(source) else (source, "", "")
    module = _module(place)
    if name:
        target: Any = module
        for part in name.split("."):
            if not hasattr(target, part):
                listed = ", ".join(sorted(_losses_of(module))) or "none"
                raise _error(source, f"{place} has no '{name}' (functions and classes: {listed})")
            target = getattr(target, part)
    else:
        public = _losses_of(module)
        if len(public) != 1 and name_of_loss not in public:
            listed = ", ".join(sorted(public)) or "none"
            problem = f"name one object as {place}:OBJECT (functions and classes: {listed})"
            raise _error(source, problem)
        target = public.get(name_of_loss) or next(iter(public.values()))
    return Candidate(source, _callable(source, target, options))


def _has_object(source: str) -> bool:
    return ":" in source and not source.rpartition(":")[2].endswith(".py")


def _module(place: str) -> Any:
    """Return the imported module or file."""
    try:
        if not place.endswith(".py"):
            if "" not in sys.path:
                sys.path.insert(0, "")
            return importlib.import_module(place)
        path = Path(place)
        if not path.is_file():
            raise _error(place, "no such file (allowed: MODULE:OBJECT, FILE.py:OBJECT, FILE.py)")
        spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        # a file may import its neighbours, which must not stand in for Python's own modules
        sys.path.append(str(path.resolve().parent))
        spec.loader.exec_module(module)
        return module
    except ConfigError:
        raise
    except Exception as error:
        raise _error(place, f"cannot be imported: {in_words(error)}") from error


def _losses_of(module: Any) -> dict[str, Any]:
    """Return the public functions and classes that a module defines itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    }


def _callable(source: str, target: Any, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return what is called with (embeddings, labels)."""
    if inspect.isclass(target):
        try:
            if issubclass(target, Loss):
                target = target(build(target.Config, options, f"loss '{source}'"))
            else:
                target = target()
        except ConfigError:
            raise
        except Exception as error:
            problem = f"the class cannot be made without arguments: {in_words(error)}"
            raise _error(source, problem) from error
    if not callable(target):
        raise _error(source, f"is {type(target).__name__}, which cannot be called")
    function = _called(target)
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise _error(source, f"cannot be called with (embeddings, labels): {error}") from error
    except Exception:  # written in C, or of its own making: there is nothing to look at
        pass
    return target


def _called(target: Any) -> Any:
    """Return what has the arguments of a call: of a module, its ``forward``."""
    return target.forward if isinstance(target, nn.Module) else target


def _error(source: str, problem: str) -> ConfigError:
    return ConfigError(source, [f"{problem}; allowed: {ALLOWED}"])
