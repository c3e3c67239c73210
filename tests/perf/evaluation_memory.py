"""Peak memory and time of our evaluation in a process of its own, where nothing else is held.

    python -m perf.evaluation_memory ITEMS QUERIES THREADS

prints one JSON object. With fewer QUERIES than ITEMS, the first so many items are ranked against all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

from benchmark.metrics import retrieval_metrics
from perf.memory import peak_of_process
from perf.turns import seconds_of

RECALL_AT = (1, 10, 100, 1000)
DIMENSION, PER_CLASS = 512, 5


def made_up(items: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns random unit rows (items, dim) float32 and their labels (items,)."""
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // PER_CLASS


def measured_apart(items: int, queries: int, threads: int) -> dict[str, float | None]:
    """Returns ``seconds`` and ``peak_mb`` (beyond the embeddings; None where the system does not say) of all
    metrics, 512-d, measured once."""
    command = [sys.executable, "-m", __name__, str(items), str(queries), str(threads)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command[1:])} ended with status {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout)


def main(items: int, queries: int, threads: int) -> None:
    """Measures once and prints."""
    rows, labels = made_up(items, DIMENSION)
    gallery = () if queries >= items else (rows, labels)
    peaks = []

    def measure() -> None:
        peaks.append(
            peak_of_process(
                lambda: retrieval_metrics(
                    rows[:queries], labels[:queries], *gallery, recall_at=RECALL_AT, threads=threads
                )
            )
        )

    seconds = seconds_of(measure)
    print(
        json.dumps({"seconds": seconds, "peak_mb": None if peaks[0] is None else peaks[0] / 2**20})
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
