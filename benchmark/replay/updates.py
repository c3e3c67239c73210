"""What reaches the optimiser, and what the optimiser does with it, from its own gradients."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from benchmark.core.recipe import Recipe
from benchmark.replay.findings import PartFinding, differs, sought
from benchmark.replay.trace import Trace
from benchmark.training.numerics import learning_rate_factor

ROUNDING = 1.5 * 2.0**-23  # relative: two roundings to float32, and the error of a solved rate
OF_MOMENTS = 2e-5  # of the largest update: the moments of Adam are rounded, too
SAME = 1e-3  # of norms and rates, relative
KINDS: dict[str, Any] = {
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
    "sgd": (torch.optim.SGD, {}),
    "sgd with momentum 0.9": (torch.optim.SGD, {"momentum": 0.9}),
}
DECAYS = [0.0, *np.geomspace(1e-6, 1.0, 25).tolist()]


@dataclass(frozen=True)
class Moves:
    """Recorded coordinates of the parameters of a role around T updates: (T, N) each.

    ``read`` is what their optimiser shows when recording begins.
    """

    steps: list[int]
    read: dict[str, Any]
    before: torch.Tensor
    gradient: torch.Tensor
    after: torch.Tensor

    def tried(
        self, kind: str, rates: torch.Tensor | None, decay: float
    ) -> tuple[float, torch.Tensor]:
        """Return the largest error of an optimiser that begins empty, and its rates (T,).

        The error is in units of what rounding explains. Rates that are None are solved.
        """
        value = torch.nn.Parameter(self.before[0].clone())
        target, options = KINDS[kind]
        optimizer = target([value], lr=1.0, weight_decay=decay, **options)
        made = []
        for before, gradient in zip(self.before, self.gradient, strict=True):
            value.data = before.clone()
            value.grad = gradient
            optimizer.step()
            made.append(before - value.data)
        directions = torch.stack(made)
        moved = self.before - self.after
        allowed = ROUNDING * torch.maximum(self.before.abs(), self.after.abs()) + 1e-30
        allowed += OF_MOMENTS * moved.abs().amax(1, keepdim=True)
        if rates is None:
            weighted = directions / allowed.square()
            rates = (weighted * moved).sum(1) / ((weighted * directions).sum(1) + 1e-60)
        errors = (moved - directions * rates[:, None]).abs() / allowed
        return float(errors.max()), rates

    def best(
        self, kind: str, rates: torch.Tensor | None, decays: list[float]
    ) -> tuple[float, float, torch.Tensor]:
        """Return the first decay, if it fits, or else the best, with its error and rates."""
        decay = decays[0]
        error, found = self.tried(kind, rates, decay)
        if error > 1.0 and len(decays) > 1:
            decay = sought(lambda value: self.tried(kind, rates, value)[0], decays)
            error, found = self.tried(kind, rates, decay)
        return decay, error, found


def roles_of(trace: Trace) -> dict[str, str]:
    """Return "loss", "head" or "backbone" of each parameter.

    The head is the last matrix that gives embeddings.
    """
    widths = [step.embeddings.shape[1] for step in trace.steps if step.embeddings is not None]
    if not widths:
        raise LookupError("without embeddings nobody knows the head")
    roles = {}
    head = ""
    for name, shape in trace.shapes.items():
        roles[name] = "loss" if name.startswith("loss.") else "backbone"
        if roles[name] == "backbone" and len(shape) == 2 and shape[0] in widths:
            head = name.rpartition(".")[0]
    return {
        name: "head" if name.rpartition(".")[0] == head else role for name, role in roles.items()
    }


def moves_of(trace: Trace, role: str) -> Moves | None:
    """Return the updates of the parameters of a role, of those that most updates move."""
    roles = roles_of(trace)
    rows: dict[str, Any] = {name: ([], []) for name in roles if roles[name] == role}
    read: dict[str, Any] = {}
    for number, step in enumerate(trace.steps):
        for update in step.updates:
            sizes = [min(trace.coordinates, prod(trace.shapes[name])) for name in update.names]
            values = torch.stack([update.before, update.gradient, update.after]).double()
            for name, piece in zip(update.names, values.split(sizes, 1), strict=True):
                if name in rows:
                    rows[name][0].append(number)
                    rows[name][1].append(piece)
                    of_group = [group for group in update.groups if name in group["names"]]
                    shown = {"optimizer": update.optimizer.lower(), "fresh": update.fresh}
                    read = read or {**dict(*of_group), **shown}
    most: list[int] = max((numbers for numbers, _ in rows.values()), key=len, default=[])
    if not most:
        return None
    pieces = [torch.stack(values) for numbers, values in rows.values() if numbers == most]
    return Moves(most, read, *torch.cat(pieces, 2).unbind(1))


def backward_finding(trace: Trace) -> PartFinding:
    """Compare the gradients that backward made with those that reach the optimiser."""
    updates = [update for step in trace.steps for update in step.updates]
    if not updates:
        return PartFinding("backward", "not recorded")
    idle = sum(not step.updates for step in trace.steps)
    says = f"backward passes an update: {max(update.passes for update in updates)}"
    if idle:
        says = f"{says}; steps without one, by accumulation or a scaler that skips: {idle}"
    ratios = [float(update.norms.norm() / update.made.norm()) for update in updates]
    scale = 2.0 ** np.rint(np.log2(min(ratios)))  # scalers multiply by powers of two
    if trace.processes > 1:
        says = f"{trace.processes} processes average their gradients; {says}"
        return PartFinding("backward", "not decided", says)
    if all(abs(each / scale - 1) < SAME for each in ratios):
        return PartFinding("backward", "equal", says)
    return differs("backward", min(ratios), "clipping", value=min(ratios))


def update_findings(trace: Trace, recipe: Recipe) -> Iterator[PartFinding]:
    """Yield one finding of each group of parameters, or one for each of its two causes."""
    config = recipe.optimizer
    head = config.head_lr_multiplier
    of_loss = config.proxy_weight_decay
    groups = {
        "backbone": (1.0, config.weight_decay),
        "head": (head, config.weight_decay),
        "loss": (
            config.proxy_lr_multiplier or head,
            config.weight_decay if of_loss is None else of_loss,
        ),
    }
    common = 1.0
    updated = any(step.updates for step in trace.steps)
    present = set(roles_of(trace).values())
    for role, (multiplier, decay) in groups.items():
        if role not in present:
            continue
        part = f"update of the {role}"
        moves = moves_of(trace, role)
        if role == "loss" and updated and (moves is None or torch.equal(moves.before, moves.after)):
            yield differs(part, 1.0, "loss_not_trained")
            continue
        if moves is None:
            yield PartFinding(part, "not recorded")
            continue
        shares = [step / len(trace.sizes or trace.steps) for step in moves.steps]
        epochs = max(recipe.training.epochs, 1)
        factors = [learning_rate_factor(recipe.schedule, 0, share, epochs) for share in shares]
        rates = config.lr * multiplier * torch.tensor(factors).double()
        for finding in compared(part, moves, recipe, rates, decay, common):
            if finding.cause == "learning_rate":
                common = finding.size or 1.0
            yield finding


def compared(
    part: str, moves: Moves, recipe: Recipe, wanted: torch.Tensor, own: float, common: float
) -> Iterator[PartFinding]:
    """Yield the findings of a group that should learn at ``wanted`` (T,) and decay by ``own``.

    ``common``: how many times as fast the backbone learns.
    """
    kind = recipe.optimizer.name
    swapped = "adam" if kind == "adamw" else "adamw"
    keys = ("optimizer", "lr", "weight_decay")
    shown = ", ".join(f"{key} {moves.read.get(key, 'hidden')}" for key in keys)
    if not moves.read["fresh"]:
        yield PartFinding(part, "not decided", f"the optimiser has a filled state; read: {shown}")
        return
    # optimiser, whether rate and decay are solved: one cause first, then two
    for tried, free_rate, free_decay in (
        (kind, False, False),
        (kind, True, False),
        (swapped, False, False),
        (kind, False, True),
        (swapped, True, False),
        *((each, True, True) for each in (kind, *KINDS)),
    ):
        decays = DECAYS if free_decay else [own]
        decay, excess, rates = moves.best(tried, None if free_rate else wanted, decays)
        if excess <= 1.0:
            break
    else:
        if moves.read["optimizer"] in KINDS:
            yield differs(part, excess, "")
        else:
            yield PartFinding(part, "not decided", f"an optimiser unknown here; read: {shown}")
        return
    if tried not in (kind, swapped):  # its rate and decay mean something else
        says = f"{tried}, rate {rates[-1]:.3g}, decay {decay:.3g}"
        yield differs(part, 1.0, "other_optimizer", value=says)
        return
    if free_rate:
        yield of_rates(part, recipe, rates, wanted, common)
    if tried != kind:
        yield differs(part, 1.0, "decoupled_decay", value=tried)
    role = part.rpartition(" ")[2]
    if free_decay:
        cause = "decay_of_loss" if role == "loss" else "weight_decay"
        yield differs(part, decay, cause, value=decay, ours=own)
    elif tried == kind and not free_rate:
        hidden = moves.tried(kind, wanted, 0.0 if own else 1e-4)[0] <= 1.0
        read = moves.read["optimizer"], moves.read.get("weight_decay")
        if hidden and read != (kind, own):
            says = f"the rate is equal, the decay {own:g} below rounding; read: {shown}"
            yield PartFinding(part, "not decided", says)
        else:
            yield PartFinding(part, "equal", f"{kind}, rate {rates[-1]:.3g}, decay {own:g}")


def of_rates(
    part: str, recipe: Recipe, rates: torch.Tensor, wanted: torch.Tensor, common: float
) -> PartFinding:
    """Return the difference of rates (T,) that were solved."""
    ratios = (rates / wanted)[wanted > 0]
    factor = float(ratios.median()) if len(ratios) else 0.0
    warm_up = recipe.schedule.warmup_epochs
    if warm_up and rates.max() - rates.min() < SAME * rates.max():
        return differs(part, 1.0, "warm_up_absent", epochs=warm_up)
    if warm_up and (ratios / factor - 1).abs().max() < SAME:
        says = "the rate rises as in the recipe, for another number of batches"
        return PartFinding(part, "not decided", says, factor)
    role = part.rpartition(" ")[2]
    shared = role == "backbone" or abs(factor / common - 1) < SAME
    cause = "learning_rate" if shared else f"rate_of_{role}"
    return differs(part, factor, cause, value=factor)
