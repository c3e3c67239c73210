"""The value and gradient of an implementation in two processes that train together."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

import torch
from torch import distributed, multiprocessing

from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent
from benchmark.losses.conformance import cases
from benchmark.losses.conformance.candidate import REFUSALS, in_words, load
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.checks import FLOAT32
from benchmark.losses.conformance.findings import Finding
from benchmark.losses.conformance.reference import Answer
from benchmark.losses.conformance.subject import Subject, differing_gradients, differing_values

NAME = "scaling over processes"
PROCESSES = 2
SECONDS = 120


def check_processes(subject: Subject) -> Finding:
    """Return whether a candidate that gathers has the value and gradient of the whole batch.

    Each process gives it half of the batch, and gradients are averaged over processes, as torch's
    DistributedDataParallel does. A candidate that only sees its own half is judged on that half,
    and nothing is said on the whole.
    """
    whole = cases.mixed("two halves of 4 classes of 2", [4] * 4, 8, 13)
    order = whole.labels.argsort(stable=True).view(-1, PROCESSES).T.reshape(-1)
    whole = whole.subset(order.tolist())
    halves = [whole.subset(part.tolist()) for part in torch.arange(len(order)).chunk(PROCESSES)]
    if subject.reference.random:
        return Finding(NAME, "not applicable", "random numbers differ between processes")
    answers = _run(subject, halves)
    if isinstance(answers, Finding):
        return answers
    value = sum(answer.value for answer in answers) / PROCESSES
    gradient = torch.cat([answer.gradient for answer in answers if answer.gradient is not None])
    if len(gradient) < len(whole.labels):
        return Finding(NAME, "failed", "no gradient reaches the embeddings", whole)
    expected = subject.expected(whole, FLOAT32)
    alone = [subject.expected(half, FLOAT32) for half in halves]
    own = [
        differing_values(answer.value, half.value, half.of_value)
        for answer, half in zip(answers, alone, strict=True)
    ]
    if own == [None] * PROCESSES:
        wanted = torch.cat([half.gradient for half in alone if half.gradient is not None])
        allowed = max((half.of_gradient for half in alone), key=lambda allowed: allowed.whole)
        found = differing_gradients(gradient, wanted, allowed)
        if found:
            return Finding(NAME, "failed", f"each process on its own half: {found.text}", halves[0])
        return Finding(NAME, "not applicable", "each process ranks its own half of the batch")
    found = differing_values(value, expected.value, expected.of_value)
    found = found or differing_gradients(
        gradient / PROCESSES, expected.gradient, expected.of_gradient
    )
    if found:
        return Finding(NAME, "failed", f"mean over {PROCESSES} processes: {found.text}", whole)
    return Finding(NAME, "passed", "mean over processes = one process with the whole batch")


def _run(subject: Subject, halves: list[Case]) -> list[Answer] | Finding:
    """Return the answer of each process, or why there is none.

    The gradient of a row is the sum over processes of what their losses say of that row; each
    process has only its own rows, so that no summing is left to do.
    """
    named = subject.candidate.source, subject.reference.name, subject.reference.options
    with held_back_from_workers():
        pool = multiprocessing.get_context("spawn").Pool(PROCESSES, leave_interrupts_to_parent)
    with pool, tempfile.TemporaryDirectory() as folder:
        works = [(rank, half, f"{folder}/meeting", *named) for rank, half in enumerate(halves)]
        try:
            found = pool.starmap_async(_work, works, chunksize=1).get(SECONDS)
        except multiprocessing.TimeoutError:
            return Finding(NAME, "failed", f"no answer within {SECONDS} s in two processes")
    problem = next((each for each in found if isinstance(each, Finding)), None)
    return problem or [each for each in found if isinstance(each, Answer)]


def _work(
    rank: int, half: Case, meeting: str, source: str, loss: str, options: Mapping[str, Any]
) -> Answer | Finding:
    """Answer for one half of the batch, in a process of its own."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=PROCESSES
    )
    try:
        return load(source, loss, options).answer(half, FLOAT32)
    except REFUSALS as error:
        return Finding(NAME, "not applicable", f"refused in two processes: {in_words(error)}")
    except Exception as error:
        return Finding(NAME, "failed", f"raised {in_words(error)}")
    finally:
        distributed.destroy_process_group()
