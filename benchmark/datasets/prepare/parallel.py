"""One function over many items in worker processes: results in order, some of them at a time."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent

BLOCK = 2000  # items whose results may wait in memory
CHUNK = 32  # items handed to a worker at a time
MIN_ITEMS = 500  # per worker; fewer take less time than starting it


def ordered_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item in order; few items or one worker stay here."""
    workers = min(workers, -(-len(items) // MIN_ITEMS))
    if workers <= 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
    with ProcessPoolExecutor(workers, context, _start_worker, (function,)) as pool:
        for at in range(0, len(items), BLOCK):
            with held_back_from_workers():
                results = pool.map(_apply, items[at : at + BLOCK], chunksize=CHUNK)
            yield from results


_function: Callable[[Any], Any]  # of a worker: sent once instead of with every chunk


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    leave_interrupts_to_parent()


def _apply(item: Any) -> Any:
    return _function(item)
