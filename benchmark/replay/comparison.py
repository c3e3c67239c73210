"""Compare a trace with a recipe, or with another trace of the same program."""

from collections.abc import Callable, Iterable, Iterator
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
from benchmark.replay.gradients import loss_findings
from benchmark.replay.numbering import images_finding
from benchmark.replay.trace import RecordedStep, Trace
from benchmark.replay.updates import backward_finding, update_findings
from benchmark.study.recipes import read_recipe

# The parts of two traces of one program.
SHARED = ("batch", "input", "network", "loss", "gradient", "backward", "update")


def expected(
    source: str, loss: str | None, options: dict[str, Any]
) -> tuple[Recipe, LossChoice | None, int | None]:
    """Return recipe, loss and batch size of a ``spec.json``, or of a recipe and a loss."""
    if source.endswith(".json"):
        spec = RunSpec.read(Path(source))
        found: tuple[Recipe, LossChoice | None, int | None]
        found = spec.recipe, spec.loss, spec.batch_size
        own = spec.loss.params if loss == spec.loss.name else {}
    else:
        path = Path(source).absolute()
        if path.suffix and (path.parent.name != "recipes" or not path.exists()):
            raise RunError(f"--as {source}: give a file NAME.yaml in a folder 'recipes'")
        recipe = read_recipe(path.stem, path.parent.parent / "study.yaml")
        found = recipe, None, None
        own = recipe.losses.get(loss or "", {})
    if loss is not None:
        params = {**defaults_of(LOSSES[loss].target.Config), **own, **options}
        found = found[0], LossChoice(loss, loss, params), found[2]
    return found


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
    found: list[tuple[int, PartFinding]] = []
    for number, pair in enumerate(zip(trace.steps, other.steps, strict=False), 1):
        for part, both in zip(SHARED, zip(*map(tensors_of, pair), strict=True), strict=True):
            wrong = [x for x in zip(*both, strict=False) if not torch.equal(*x)]
            if part in [each.part for _, each in found] or not wrong:
                continue
            given, ours = wrong[0]
            size = None
            if given.shape == ours.shape:
                size = float((given - ours).double().norm() / (ours.double().norm() + 1e-30))
            found.append((number, PartFinding(part, "differs", f"from step {number} on", size)))
    parts = {finding.part for _, finding in found}
    equal = [PartFinding(part, "equal", "in all bits") for part in SHARED if part not in parts]
    return [finding for _, finding in found] + equal


def tensors_of(step: RecordedStep) -> list[list[torch.Tensor]]:
    """Return the tensors of each part of a step."""
    inputs = step.inputs or {}
    values = (
        [step.labels, step.numbers],
        [inputs[name] for name in inputs if name != "shape"],
        [step.embeddings],
        [step.loss],
        step.gradients,
        [update.gradient for update in step.updates],
        [update.after for update in step.updates],
    )
    return [[value for value in part if value is not None] for part in values]
