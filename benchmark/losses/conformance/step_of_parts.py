"""Checks of a step that trains a batch in parts: it leaves the gradient of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector

from benchmark.core.words import count
from benchmark.losses.conformance.check_outcomes import CheckOutcome, Result, of_error
from benchmark.losses.conformance.formulas import Case, Mismatch, Reference
from benchmark.losses.conformance.processes import PROCESSES, SCALING, answers_of_processes
from benchmark.losses.conformance.suite import load, mixed
from benchmark.losses.conformance.whole_batch import (
    DIM,
    OWN_LOSS,
    Loss,
    SmallNetwork,
    difference,
    equal,
    handed_loss,
    with_memory,
)

LOSS = "smooth_ap"  # where no other is asked for
UNEVEN = "uneven parts"


@dataclass(frozen=True)
class Trial:
    """A step at ``source``, the loss that it is given, and the batch that it is tried on."""

    source: str
    reference: Reference
    case: Case

    @property
    def loss(self) -> Loss:
        """The loss of ``reference``."""
        return handed_loss(self.reference)

    def left(self, network: SmallNetwork, *before: Case, model: nn.Module | None = None) -> Tensor:
        """Return the gradient (P,) that a step leaves, loaded anew, after steps on others."""
        step = load(self.source, self.reference).function
        for case in (*before, self.case):
            network.zero_grad()
            network.passes.clear()
            step(model or network, case.embeddings.clone(), case.labels.clone(), self.loss)
        parameters = network.parameters()
        return parameters_to_vector(
            torch.zeros_like(each) if each.grad is None else each.grad for each in parameters
        )


def findings(source: str, reference: Reference, processes: bool) -> Iterator[CheckOutcome | None]:
    """Yield None when the step is loaded, then the outcome of each check."""
    load(source, reference)
    yield None
    usual = mixed("three classes of eight", [8] * 3, DIM, 21)
    others = {
        "large batch": mixed("twelve classes of eleven", [11] * 12, DIM, 23),
        UNEVEN: mixed("23 rows in four classes", [9, 8, 4, 2], DIM, 24),
    }
    for check, look in LOOKS.items():
        if check == SCALING and not processes:
            continue
        trial = Trial(source, reference, others.get(check, usual))
        try:
            answer = look(trial)
        except Exception as error:
            crash: Result = "not applicable" if check == UNEVEN else "failed"
            answer = of_error(check, trial.case, error, crash)
        if isinstance(answer, Mismatch):
            answer = CheckOutcome(check, "failed", f"{trial.case.name}: {answer.text}")
        yield replace(answer, check=check, case=None)


def passed(note: str) -> CheckOutcome:
    """Return an outcome without a mismatch."""
    return CheckOutcome("", "passed", note)


def check_whole(trial: Trial) -> CheckOutcome | Mismatch:
    """Return whether a step leaves the gradient of the whole batch."""
    network = SmallNetwork()
    given = trial.left(network)
    parts = network.parts(trial.case)
    note = f"{count(len(parts), 'pass')} of at most {max(map(len, parts), default=0)} rows"
    return difference(network, trial.case, trial.loss, given, parts) or passed(note)


def check_next(trial: Trial) -> CheckOutcome | Mismatch:
    """Return whether the next step has the gradient of its own batch, or of one with a memory."""
    network = SmallNetwork()
    before = mixed("a batch before", [8] * 3, DIM, 22)
    given = trial.left(network, before)
    parts = network.parts(trial.case)
    batch = (network(trial.case.embeddings), trial.case.labels)
    memory = (network(before.embeddings).detach(), before.labels)
    mismatch = difference(network, trial.case, trial.loss, given, parts)
    if mismatch is None:
        return passed("nothing is left of the step before")
    for value in with_memory(trial.loss, batch, memory):
        if given.any() and equal(given, network.gradient(value)):
            return passed("ranked with rows of the step before, which are constants")
    return mismatch


def check_dropout(trial: Trial) -> CheckOutcome | Mismatch:
    """Return whether the gradient is that of the whole batch with the dropout that was drawn."""
    network = SmallNetwork(rate=0.5)
    given = trial.left(network)
    parts = network.parts(trial.case)
    dropped = network.without_dropout(trial.case)
    mismatch = difference(network, dropped, trial.loss, given, parts)
    if mismatch is not None and network.redrawn:
        return Mismatch(
            "an image has another dropout in its second pass: before it, restore the state of the "
            "random numbers"
        )
    return mismatch or passed("each image has one dropout in all its passes")


def check_batch_norm(trial: Trial) -> CheckOutcome:
    """Return what becomes of statistics of the batch, which parts do not see."""
    norm = nn.BatchNorm1d(DIM)
    network = SmallNetwork(norm)
    given = trial.left(network)
    moves = norm.state_dict()["num_batches_tracked"].item()
    whole = network.gradient(trial.loss(network(trial.case.embeddings), trial.case.labels))
    if equal(given, whole):
        return passed("one pass has the statistics of the whole batch")
    off = float((given - whole).norm() / whole.norm())
    note = f"each part has its own statistics: the gradient is off by {off:.0%} of its length, "
    note += f"the running statistics move {moves} times in a step"
    return CheckOutcome("", "not applicable", note)


def check_processes(trial: Trial) -> CheckOutcome | Mismatch:
    """Return whether two processes with half of the batch each leave the whole batch's gradient.

    The model is in torch's DistributedDataParallel, which averages gradients over the processes.
    """
    case = trial.case
    halves = torch.arange(len(case.labels)).view(PROCESSES, -1).tolist()
    cases = [case.subset(rows) for rows in halves]
    answers = answers_of_processes(_left_in_process, cases, trial.source, trial.reference)
    if isinstance(answers, CheckOutcome):
        return answers
    given = torch.stack(answers).mean(0)
    mismatch = difference(SmallNetwork(), case, trial.loss, given, halves, "processes")
    if mismatch is not None and mismatch.kind == OWN_LOSS:
        note = "each process ranks its own half of the batch"
        return CheckOutcome("", "not applicable", note)
    return mismatch or passed("two processes = one process with the whole batch")


def _left_in_process(half: Case, source: str, reference: Reference) -> Tensor:
    network = SmallNetwork()
    model = DistributedDataParallel(network)
    return Trial(source, reference, half).left(network, model=model)


LOOKS: dict[str, Callable[[Trial], CheckOutcome | Mismatch]] = {
    "whole batch": check_whole,
    "large batch": check_whole,
    UNEVEN: check_whole,
    "next step": check_next,
    "dropout": check_dropout,
    "batch norm": check_batch_norm,
    SCALING: check_processes,
}
CHECKS = tuple(LOOKS)
