"""Training steps in several processes: started once, for groups of four and of two, by gloo."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed, multiprocessing

from benchmark.training.processes import Processes

COUNTS = (4, 2)
# Imported once for all of them.
PRELOADED = (
    "process_groups",
    "benchmark.training.components",
    "benchmark.losses.pml",
    "benchmark.losses.conformance.processes",
)
SECONDS = 240


def quick_context() -> multiprocessing.context.ForkServerContext:
    """Return what starts processes that have everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    return context


def together(work: Callable[[Processes], Any]) -> dict[int, list[Any]]:
    """Return {number of processes: what ``work`` returned in each}; ``work`` must be importable."""
    context = quick_context()
    with tempfile.TemporaryDirectory() as folder:
        workers = [
            context.Process(target=_work, args=(rank, work, folder), daemon=True)
            for rank in range(max(COUNTS))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(SECONDS)
        hang = [worker.kill() for worker in workers if worker.is_alive()]
        assert not hang, f"no end within {SECONDS} s"
        assert all(worker.exitcode == 0 for worker in workers)
        return {
            count: [
                torch.load(Path(folder, f"{count}-{rank}.pt"), weights_only=False)
                for rank in range(count)
            ]
            for count in COUNTS
        }


def _work(rank: int, work: Callable[[Processes], Any], folder: str) -> None:
    torch.set_num_threads(1)
    for count in COUNTS:
        if rank >= count:
            return
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/meeting{count}",
            rank=rank,
            world_size=count,
            timeout=timedelta(seconds=SECONDS),
        )
        processes = Processes(rank, count)
        torch.save(work(processes), Path(folder, f"{count}-{rank}.pt"))
        processes.leave()
