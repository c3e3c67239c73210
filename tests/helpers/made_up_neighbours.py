"""Made-up neighbours.npz files: random embeddings of few classes, ranked without the code under
test."""

from __future__ import annotations

from pathlib import Path

import numpy as np

DIGEST = "0123456789abcdef"  # of the specification of every made-up run
QUERIES, ITEMS, CLASSES, SHOWN, SIDE = 12, 40, 5, 6, 64


def write_neighbours_file(path: Path, seed: int, *, queries: int = QUERIES) -> dict:
    """Write the file of a run whose ranking depends on ``seed``; return its arrays."""
    rng = np.random.default_rng(seed)
    labels = np.arange(ITEMS) % CLASSES
    scores = rng.normal(size=(queries, ITEMS)) + 1.2 * (labels[None, :] == labels[:queries, None])
    scores[np.arange(queries), np.arange(queries)] = -np.inf
    order = np.argsort(-scores, axis=1)[:, :-1]
    matches = labels[order] == labels[:queries, None]
    ranks = [np.flatnonzero(row) + 1 for row in matches]
    arrays = {
        "spec_digest": np.array(DIGEST),
        "queries": np.arange(queries),
        "neighbours": order[:, :SHOWN],
        "scores": np.take_along_axis(scores, order, axis=1)[:, :SHOWN].astype(np.float32),
        "matches": matches[:, :SHOWN],
        "query_names": np.array([f"/data/pictures/query {i} <b>.png" for i in range(queries)]),
        "neighbour_names": np.array([[f"item {i}" for i in row[:SHOWN]] for row in order]),
        "query_images": rng.integers(0, 255, (queries, SIDE, SIDE, 3), dtype=np.uint8),
        "positives": np.array([len(row) for row in ranks]),
        "positive_ranks": np.concatenate(ranks),
        "query_categories": labels[:queries] // 2,
        "neighbour_images": rng.integers(0, 255, (queries * SHOWN, SIDE, SIDE, 3), dtype=np.uint8),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return arrays
