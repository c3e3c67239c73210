"""One function over many items in other processes: results in order, memory bounded, a dead worker reported."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from benchmark.core.errors import RunError

CHUNK = 32  # items handed over at a time
AHEAD = 4  # chunks per worker that may wait to be fetched
WORTH_STARTING = 500  # items that take a worker longer than starting it


def available_cores() -> int:
    """Returns the CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Any]:
    """Yields ``function(item)`` for each item in order; few items or one worker stay in this process.

    ``function`` is picklable and does not raise for a single bad item. Raises RunError when a worker dies.
    """
    workers = min(workers, -(-len(items) // WORTH_STARTING))
    if workers <= 1:
        yield from map(function, items)
        return
    chunks = (items[at : at + CHUNK] for at in range(0, len(items), CHUNK))
    context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
    with ProcessPoolExecutor(workers, context, initializer=_keep, initargs=(function,)) as pool:
        waiting = deque(
            pool.submit(_apply, chunk) for chunk in itertools.islice(chunks, AHEAD * workers)
        )
        try:
            while waiting:
                results = waiting.popleft().result()
                waiting.extend(pool.submit(_apply, chunk) for chunk in itertools.islice(chunks, 1))
                yield from results
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process died, perhaps for want of memory; start the same command again with fewer --workers"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


_function: Callable[[Any], Any] | None = (
    None  # of a worker process, handed over once instead of with every chunk
)


def _keep(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this worker when its parent was killed; it would wait for work for ever."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _apply(chunk: Sequence[Any]) -> list[Any]:
    return [_function(item) for item in chunk]
