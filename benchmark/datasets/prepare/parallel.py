"""One function over many items in worker processes: ordered results, bounded memory."""

import itertools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent

CHUNK = 32  # items handed to a worker at a time
AHEAD = 4  # chunks per worker that may wait
MIN_ITEMS = 500  # per worker; fewer take less time than starting it


def ordered_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item in order; few items or one worker stay here.

    ``function`` is picklable and does not raise for a single bad item. Raise RunError when a
    worker dies. (Executor.map would queue all results, however slowly they are used.)
    """
    workers = min(workers, -(-len(items) // MIN_ITEMS))
    if workers <= 1:
        yield from map(function, items)
        return
    chunks = (items[at : at + CHUNK] for at in range(0, len(items), CHUNK))
    context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
    with ProcessPoolExecutor(workers, context, _start_worker, (function,)) as pool:
        first = itertools.islice(chunks, AHEAD * workers)
        with held_back_from_workers():
            waiting = deque(pool.submit(_apply, chunk) for chunk in first)
        try:
            while waiting:
                results = waiting.popleft().result()
                waiting.extend(pool.submit(_apply, chunk) for chunk in itertools.islice(chunks, 1))
                yield from results
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process died, perhaps for want of memory; start the same command again "
                "with fewer --workers"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


_function: Callable[[Any], Any]  # of a worker: sent once instead of with every chunk


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    leave_interrupts_to_parent()


def _apply(chunk: Sequence[Any]) -> list[Any]:
    return [_function(item) for item in chunk]
