"""``score`` beside the rankings it rests on, in a process that holds nothing else."""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from perf.evaluation import made_up
from perf.timing import Row, Target, peak_of_process

from benchmark.metrics import protocols, score, scoring

# queries, gallery (0: each other), and GiB of memory at most
SIZES = ((60_000, 0, 2), (1_000, 1_000_000, 3))
QUICK_SIZES = ((5_000, 0, 2), (100, 100_000, 3))
DIMENSION = 512
MAX_RATIO = 1.1


def own_scores(quick: bool) -> Iterator[Row]:
    """Random unit rows, five to a class; 60,000 in float32, each other's queries, then 1,000 that
    search 1,000,000 mapped rows in float16. ``times_rankings``: all of ``score`` over its calls of
    ``ranked``, in processor time. ``peak_gib``: of the process.
    """
    for queries, gallery, gib in QUICK_SIZES if quick else SIZES:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            row = pool.submit(measure, queries, gallery).result()
        targets = [
            Target("score, cost", row["times_rankings"], MAX_RATIO, "x its rankings"),
            Target("score, memory", row["peak_gib"], gib, "GiB"),
        ]
        yield {**row, "targets": targets}


def measure(queries: int, gallery: int) -> Row:
    """Return times and memory of one call."""
    count = queries + gallery
    kind = np.float16 if gallery else np.float32
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", kind, (count, DIMENSION))
        for start in range(0, count, 50_000):
            part = rows[start : start + 50_000]
            part[:] = made_up(len(part), DIMENSION)[0]
        del rows, part
        rows = np.load(path, mmap_mode="r")
        sides: dict[str, Any] = {}
        if gallery:
            sides = {"query": np.arange(queries), "gallery": np.arange(queries, count)}
        spent = []

        def timed(*given: Any, **more: Any) -> Any:
            start = time.process_time()
            found = protocols.ranked(*given, **more)
            spent.append(time.process_time() - start)
            return found

        labels = np.arange(count) % (count // 5)
        start = time.process_time()
        with mock.patch.object(scoring, "ranked", timed):
            peak = peak_of_process(lambda: score(rows, labels, **sides))
        seconds = time.process_time() - start
    return {
        "queries": queries,
        "gallery": gallery or queries,
        "rankings": len(spent),
        "seconds": seconds,
        "times_rankings": seconds / sum(spent),
        "peak_gib": peak / 2**30,
    }
