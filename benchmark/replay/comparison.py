"""Compare a trace with a recipe, or with another trace of the same program."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmark.core.errors import RunError
from benchmark.core.options import defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import LossChoice, RunSpec
from benchmark.datasets.base import ImageSet
from benchmark.losses import LOSSES
from benchmark.replay.feeding import batch_finding, input_finding, network_finding
from benchmark.replay.findings import PartFinding
from benchmark.replay.gradients import distances, loss_findings
from benchmark.replay.numbering import images_finding
from benchmark.replay.trace import RecordedStep, Trace
from benchmark.replay.updates import backward_finding, update_findings
from benchmark.study.recipes import read_recipe


def expected(
    source: str, loss: str | None, options: dict[str, Any]
) -> tuple[Recipe, LossChoice | None, int | None]:
    """Return recipe, loss and batch size of a ``spec.json``, or of a recipe and a loss."""
    if source.endswith(".json"):
        spec = RunSpec.read(Path(source))
        if loss is None:
            return spec.recipe, spec.loss, spec.batch_size
        own = spec.loss.params if loss == spec.loss.name else {}
        return spec.recipe, choice(loss, own, options), spec.batch_size
    path = Path(source).absolute()
    if path.suffix and (path.parent.name != "recipes" or not path.exists()):
        raise RunError(f"--as {source}: give a file NAME.yaml in a folder 'recipes'")
    recipe = read_recipe(path.stem, path.parent.parent / "study.yaml")
    if loss is None:
        return recipe, None, None
    return recipe, choice(loss, recipe.losses.get(loss, {}), options), None


def choice(loss: str, own: Mapping[str, Any], options: dict[str, Any]) -> LossChoice:
    """Return a loss with its defaults, those of the recipe, and options that were typed."""
    params = {**defaults_of(LOSSES[loss].target.Config), **own, **options}
    return LossChoice(loss, loss, params)


def against_recipe(
    trace: Trace,
    recipe: Recipe,
    loss: LossChoice | None,
    size: int | None,
    images: ImageSet | None = None,
) -> Iterator[PartFinding]:
    """Yield the findings of all parts of a step in the order of computation.

    ``images`` are those that the numbers of the trace count, if they are known.
    """
    parts: dict[str, Callable[[], PartFinding | Iterable[PartFinding]]] = {
        "batch": lambda: batch_finding(trace, recipe, size),
        "images": lambda: images_finding(trace, recipe, images) if images else [],
        "input": lambda: input_finding(trace, recipe),
        "network": lambda: network_finding(trace, recipe),
        "loss": lambda: loss_findings(trace, loss, recipe.memory),
        "backward": lambda: backward_finding(trace),
        "update": lambda: update_findings(trace, recipe),
    }
    for part, judge in parts.items():
        try:
            found = judge()
            yield from [found] if isinstance(found, PartFinding) else found
        except (IndexError, KeyError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # a stranger's file may lack anything, or have it in another form
            says = f"what it needs is missing or damaged ({type(error).__name__}: {error})"
            yield PartFinding(part, "not recorded", says)


def against_trace(trace: Trace, other: Trace) -> list[PartFinding]:
    """Return the findings of each part of two traces, those of the earliest step first."""
    found: dict[str, PartFinding] = {}
    equal: dict[str, PartFinding] = {}
    for number, (theirs, ours) in enumerate(zip(trace.steps, other.steps, strict=False), 1):
        others = tensors_of(ours)
        for part, values in tensors_of(theirs).items():
            equal[part] = PartFinding(part, "equal", f"in all bits of {number} steps")
            pairs = zip(values, others[part], strict=False)
            wrong = next((pair for pair in pairs if not torch.equal(*pair)), None)
            if wrong and part not in found:
                size = None
                if wrong[0].shape == wrong[1].shape:
                    (size,) = distances(*([value.double()] for value in wrong))
                found[part] = PartFinding(part, "differs", f"from step {number} on", size)
    return [*found.values(), *(equal[part] for part in equal if part not in found)]


def tensors_of(step: RecordedStep) -> dict[str, list[torch.Tensor]]:
    """Return the tensors of each part of a step."""
    inputs = step.inputs or {}
    values = {
        "batch": [step.labels, step.numbers],
        "input": [inputs[name] for name in inputs if name != "shape"],
        "network": [step.embeddings],
        "loss": [step.loss],
        "gradient": step.gradients,
        "backward": [update.gradient for update in step.updates],
        "update": [update.after for update in step.updates],
    }
    return {part: [x for x in values[part] if x is not None] for part in values}
