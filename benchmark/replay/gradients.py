"""The loss of a step and its gradient, from the step's own embeddings, labels and state."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.core.errors import BenchmarkError
from benchmark.core.recipe import MemoryConfig
from benchmark.core.records import LossChoice
from benchmark.losses import LOSSES, create_loss
from benchmark.replay.feeding import rows_of
from benchmark.replay.findings import CAUSES, Change, PartFinding, differs, explanation, sought
from benchmark.replay.trace import RecordedStep, Trace

ROUNDING = 2.0**-22  # of float32, relative
HALF = 2.0**-9  # of bfloat16, relative
SAFETY = 20.0  # times what one rounding error changes
LEAST = 1e-4  # relative: an implementation sums in another order
GRID = np.geomspace(1 / 16, 16, 33)  # times a hyperparameter: near the best its value is sought
DIGITS = (2, 3, 4)  # of a sought value, the fewest that fit
PARTS = ("loss", "gradient")
TIMES = ("factor", "turn")  # changes that multiply both, and the gradient alone


@dataclass(frozen=True)
class StepLoss:
    """The loss of one step; ``pools`` are memories that it may have read, the likeliest last.

    A change is one of ``causes.yaml``; without one the loss is that of the recipe.
    """

    step: RecordedStep
    choice: LossChoice
    shapes: dict[str, list[int]]
    pools: list[list[Tensor]]

    def loss(self, options: dict[str, Any]) -> Any:
        """Return the loss with its recorded parameters; raise LookupError without them."""
        width = self.step.embeddings.shape[1]
        params = {**self.choice.params, **options}
        state = self.step.state
        recorded = [state[name] for name in state if name in self.shapes]
        recorded += [value.T for value in recorded]
        repeats = {1, *(each for each in params.values() if type(each) is int and each)}
        lengths = {length for value in recorded for length in value.shape}
        classes = {length // each for length in lengths for each in repeats} - {0}
        for count in sorted(classes | {int(self.step.labels.max()) + 1}):
            sizes = {"embedding_dim": width, "num_classes": count}
            loss = create_loss(self.choice.name, **sizes, **params)
            for parameter in loss.parameters():
                fits = [value for value in recorded if value.shape == parameter.shape]
                if not fits:
                    break
                parameter.data = fits[0]
            else:
                return loss
        raise LookupError("the parameters of the loss were not recorded")

    @cached_property
    def pool(self) -> list[Tensor]:
        """Rows and labels of the memory that gives the recorded loss, else the likeliest."""
        fits = (pool for pool in self.pools if max(self.apart({}, pool)) < LEAST)
        return next(fits, self.pools[-1])

    @cached_property
    def rows(self) -> str:
        """What rows are, as ``rows_of`` says it."""
        return rows_of(self.step)

    def seen(self, gradient: Tensor) -> Tensor:
        """Return a gradient without its part along unit rows, which no network sees."""
        if self.rows != "unit":
            return gradient
        rows = self.step.embeddings
        return gradient - (gradient * rows).sum(1, keepdim=True) * rows

    @cached_property
    def recorded(self) -> list[Tensor]:
        """The loss, and the gradient if that was recorded."""
        gradients = self.step.gradients
        return [self.step.loss, *([self.seen(sum(gradients))] if gradients else [])]

    def answer(
        self, change: dict[str, Any], pool: list[Tensor], noise: float = 0.0
    ) -> list[Tensor]:
        """Return loss and gradient (B, D); ``noise`` is the size of an error of the rows."""
        given = self.step.embeddings
        leaf = (given + noise * given.roll(1, 0)).requires_grad_()
        rows = F.normalize(leaf) if self.rows == "normalised later" else leaf
        labels = self.step.labels + change.get("shift", 0)
        loss = self.loss(change.get("options", {}))
        lost = change.get("lost")
        if lost == "queries":
            others = [rows.detach(), labels]
            if pool:
                others = [torch.cat(both) for both in zip(others, pool, strict=True)]
            value = loss(rows, labels, *others)
        elif pool:
            value = loss.with_memory(rows, labels, *pool)
        else:
            value = loss(rows, labels)
        gradient = self.seen(torch.autograd.grad(value, leaf)[0])
        if lost == "rows":
            gradient = gradient * sum(self.step.gradients).any(1, keepdim=True)
        answer = [value.detach(), gradient]
        for place, theirs in enumerate(self.recorded):
            if TIMES[place] in change:
                ours = answer[place]
                ratio = (theirs * ours).sum() / ours.square().sum()
                answer[place:] = [ratio * each for each in answer[place:]]
        return answer

    def apart(self, change: dict[str, Any], pool: list[Tensor]) -> list[float]:
        """Return the distances from the recorded loss and gradient, relative."""
        try:
            return distances(self.recorded, self.answer(change, pool))
        except (BenchmarkError, RuntimeError):  # beyond the limits of an option, or no proxy
            return [np.inf]

    def explained(self, rounding: float) -> list[float]:
        """Return the distances of loss and gradient that such a rounding of the rows explains."""
        exact = self.answer({}, self.pool)
        rough = self.answer({}, self.pool, rounding)
        return [LEAST + SAFETY * each for each in distances(rough, exact)]

    @cached_property
    def allowed(self) -> list[float]:
        """The distances of loss and gradient that rounding explains."""
        return self.explained(ROUNDING)

    def excess(self, change: dict[str, Any]) -> np.ndarray:
        """Return how far loss and gradient are off, in units of what rounding explains."""
        apart = self.apart(change, self.pool)
        return np.divide(apart, self.allowed[: len(apart)])

    def changes(self) -> Iterator[Change]:
        """Yield each change that the causes of loss and gradient have for this loss."""
        options = fields(LOSSES[self.choice.name].target.Config)
        for cause in CAUSES.values():
            change = cause.change if cause.part in PARTS else {}
            for key in change.keys() - {"options"}:
                yield from ((cause, {key: value}) for value in change[key])
            for option in options:
                if change.get("options") in (["all"], [option.name]):
                    for value in self.others(option.name, get_args(option.type)):
                        yield cause, {"options": {option.name: value}}

    def others(self, name: str, allowed: tuple[Any, ...]) -> list[Any]:
        """Return other values of an option; of a number the one that fits best."""
        now = self.choice.params.get(name)
        if isinstance(now, bool | str):
            return [value for value in allowed or (True, False) if value != now]
        if not isinstance(now, float):
            return []

        def excess(value: float) -> float:
            return min(self.excess({"options": {name: value}}).max(), 1e9)

        found = sought(excess, [0.0, *(now or 1.0) * GRID])
        rounded = (float(f"{found:.{digits}g}") for digits in DIGITS)
        return [next((value for value in rounded if excess(value) <= 1.0), found)]


def distances(given: list[Tensor], ours: list[Tensor]) -> list[float]:
    """Return the distance of each pair, relative to ours."""
    pairs = zip(given, ours, strict=False)
    return [float((x - y).norm() / (y.norm() + 1e-9)) for x, y in pairs]


def step_losses(trace: Trace, choice: LossChoice, memory: MemoryConfig) -> list[StepLoss]:
    """Return the losses of the steps that have embeddings, labels and loss."""
    found = []
    past: list[list[Tensor]] = []
    for number, step in enumerate(trace.steps):
        now = [step.embeddings, step.labels]
        if any(value is None for value in (step.loss, *now)):
            continue
        past.append(now)
        pools: list[list[Tensor]] = [[]]
        if memory.size is not None:
            given = [value for name, value in step.state.items() if name.startswith("memory")]
            if given:
                old = torch.cdist(given[0], now[0]).amin(1) > 0
                pools += [given, [each[old] for each in given]]
            elif len(past) == number + 1 > 1:  # no step is missing
                size = max(memory.size, 0)
                for rows in (past, past[:-1]):
                    pools.append([torch.cat(each)[-size:] for each in zip(*rows, strict=True)])
        found.append(StepLoss(step, choice, trace.shapes, pools))
    return found


def loss_findings(
    trace: Trace, choice: LossChoice | None, memory: MemoryConfig
) -> Iterator[PartFinding]:
    """Yield the findings of the loss and of its gradient; raise LookupError without parameters."""
    steps = step_losses(trace, choice, memory) if choice else []
    if choice is None or not steps or LOSSES[choice.name].facts["stochastic"]:
        says = "the loss draws random numbers, was not recorded, or is not given (--loss)"
        yield from (PartFinding(part, "not decided", says) for part in PARTS)
        return

    def fits(change: dict[str, Any]) -> bool:
        return all(step.excess(change).max() <= 1.0 for step in steps)

    found = explanation(steps[-1].changes(), fits)
    excess = np.array([step.excess({}) for step in steps]).max(0)
    sizes = np.array([step.apart({}, step.pool) for step in steps]).max(0)
    half = np.zeros_like(sizes)
    if any(step.tf32 or step.dtype != "torch.float32" for step in trace.steps):
        half = np.array([step.explained(HALF)[: len(sizes)] for step in steps]).max(0)
    for place, size in enumerate(sizes.tolist()):
        part = PARTS[place]
        mine = [change for change in found or () if change[0].part == part] or found
        if excess[place] <= 1.0:
            yield PartFinding(part, "equal", size=size)
        elif mine:
            for cause, change in mine:
                (value,) = change.values()
                if isinstance(value, dict):
                    value = ", ".join(f"{name} {other}" for name, other in value.items())
                yield differs(part, size, cause.key, value=value)
        elif size <= half[place]:
            yield PartFinding(part, "not decided", "half precision may be all", size)
        elif part == "gradient" and excess[0] > 1.0:
            yield PartFinding(part, "not decided", "it is that of an unexplained loss", size)
        else:
            yield differs(part, size, "")
    if len(sizes) == 1:
        yield PartFinding("gradient", "not recorded")
