"""Time and memory of landmark retrieval among a million distractors, on made-up embeddings.

``python tests/scale/million_distractors.py`` makes 1,001,001 x 2,048 unit rows (8.2 GB) beside a
gallery of 4,993, searches them with 70 queries, plain and expanded, and prints seconds and memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from benchmark.datasets.base import Judgements
from benchmark.metrics import expand_queries, landmark_map

QUERIES, GALLERY, RELEVANT, IGNORED, ROWS = 70, 4_993, 50, 100, 65_536


def unit_rows(count: int, width: int, seed: int) -> np.ndarray:
    """Return random unit rows float32 (count, width), made in blocks."""
    rng = np.random.default_rng(seed)
    rows = np.empty((count, width), np.float32)
    for start in range(0, count, ROWS):
        block = rng.standard_normal((min(ROWS, count - start), width), dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        rows[start : start + len(block)] = block
    return rows


def peak_gb() -> float:
    """Return the largest memory of this process so far, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    """Print one line for each of the two searches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--distractors", type=int, default=1_001_001)
    parser.add_argument("--width", type=int, default=2048)
    wanted = parser.parse_args()
    query, gallery = unit_rows(QUERIES, wanted.width, 0), unit_rows(GALLERY, wanted.width, 1)
    others = unit_rows(wanted.distractors, wanted.width, 2)
    orders = [np.random.default_rng([3, n]).permutation(GALLERY) for n in range(QUERIES)]
    judgements = Judgements(
        tuple(order[:RELEVANT] for order in orders),
        tuple(order[RELEVANT : RELEVANT + IGNORED] for order in orders),
    )
    before = peak_gb()
    print(f"embeddings: {others.nbytes / 1e9:.2f} GB; peak before searching {before:.2f} GB")
    started = time.perf_counter()
    value = landmark_map(query, gallery, judgements, others)
    print(f"map {value:.4f}: {time.perf_counter() - started:.1f} s, peak {peak_gb():.2f} GB")
    started = time.perf_counter()
    expanded = expand_queries(query, gallery, 2.0, 10, others)
    print(
        f"expansion {expanded.shape}: {time.perf_counter() - started:.1f} s, peak {peak_gb():.2f} "
        "GB"
    )


if __name__ == "__main__":
    main()
