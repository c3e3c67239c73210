"""Ask an implementation in two processes that train together, each with half of a batch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

import torch
from torch import distributed, multiprocessing

from benchmark.core.errors import RunError, ended
from benchmark.core.interrupts import held_back, obey_parent_alone
from benchmark.losses.conformance.check_outcomes import CheckOutcome, of_error
from benchmark.losses.conformance.formulas import Case

SCALING = "scaling over processes"
PROCESSES = 2
SECONDS = 120


def answers_of_processes(
    answer: Callable[..., Any], halves: list[Case], *shared: Any
) -> list[Any] | CheckOutcome:
    """Return ``answer(half, *shared)`` of each process, or the outcome if one has no answer.

    Raise RunError if the implementation ends its process.
    """
    resource_tracker.ensure_running()  # its start in the block would let signals through
    with held_back():
        pool = multiprocessing.get_context("spawn").Pool(PROCESSES, obey_parent_alone)
    with pool, tempfile.TemporaryDirectory() as folder:
        common = (f"file://{folder}/meeting", answer, *shared)
        works = [(rank, half, *common) for rank, half in enumerate(halves)]
        try:
            answers: list[Any] = pool.starmap_async(_work, works, chunksize=1).get(SECONDS)
        except multiprocessing.TimeoutError:
            return CheckOutcome(SCALING, "failed", f"no answer within {SECONDS} s in two processes")
    for given in answers:
        if isinstance(given, RunError):
            raise given
        if isinstance(given, CheckOutcome):
            return given
    return answers


def _work(rank: int, half: Case, meeting: str, answer: Callable[..., Any], *shared: Any) -> Any:
    """Answer for one half of the batch, in a process of its own."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=PROCESSES)
    distributed.barrier()  # else the first to answer may leave while the other still connects
    try:
        return answer(half, *shared)
    except Exception as error:
        return of_error(SCALING, half, error)
    except SystemExit as end:
        return ended(end)
    finally:
        distributed.destroy_process_group()
