"""Embeddings that the authors' evaluation code was run on, made again from their seeds."""

from __future__ import annotations

import numpy as np

from benchmark.datasets.base import Judgements

CLASSES = 150
QUERIES = 40
ITEMS = 900
GRADES = {  # protocol: grades that are relevant, grades that are ignored
    "easy": (("easy",), ("junk", "hard")),
    "medium": (("easy", "hard"), ("junk",)),
    "hard": (("hard",), ("junk", "easy")),
}


def made_up(kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (N,) and embeddings float32 (N, D) of unit length.

    ``twins`` holds copies within classes, ``duplicates`` copies of images of any class; the
    coordinates of ``ties`` have three values, so that cosines have few.
    """
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASSES), generator.integers(2, 30, CLASSES))
    count = len(labels)
    if kind == "ties":
        rows = _coarse(generator, labels, CLASSES, 0.25)[1]
    else:
        centres = generator.standard_normal((CLASSES, 16))
        rows = centres[labels] + 1.2 * generator.standard_normal((count, 16))
    if kind == "twins":
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        rows[first + 1] = rows[first]
    if kind == "duplicates":
        copies = generator.choice(count, 200, replace=False)
        rows[copies] = rows[generator.choice(count, 200)]
    return labels, _unit(rows)


def made_up_landmarks(
    kind: str, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, list[dict[str, np.ndarray]]]:
    """Return queries (40, D), gallery (900, D) and, of each query, items of each grade."""
    generator = np.random.default_rng(seed)
    owner = generator.integers(0, QUERIES, ITEMS)
    if kind == "ties":
        queries, gallery = _coarse(generator, owner, QUERIES, 0.3)
    else:
        centres = generator.standard_normal((QUERIES, 24))
        queries = centres + 0.8 * generator.standard_normal((QUERIES, 24))
        gallery = centres[owner] + 1.2 * generator.standard_normal((ITEMS, 24))
    grade = generator.choice(["easy", "hard", "junk", "none"], ITEMS, p=[0.3, 0.3, 0.2, 0.2])
    truth = [
        {
            name: np.flatnonzero((owner == query) & (grade == name) & _kept(query, name))
            for name in ("easy", "hard", "junk")
        }
        for query in range(QUERIES)
    ]
    return _unit(queries), _unit(gallery), truth


def judged(truth: list[dict[str, np.ndarray]], protocol: str) -> tuple[list[int], Judgements]:
    """Return the queries that have something to find under a protocol, and their judgements."""
    relevant, ignored = (
        [np.concatenate([grades[name] for name in names]) for grades in truth]
        for names in GRADES[protocol]
    )
    kept = [query for query, items in enumerate(relevant) if len(items)]
    return kept, Judgements(
        tuple(relevant[query] for query in kept), tuple(ignored[query] for query in kept)
    )


def whitening_rows() -> np.ndarray:
    """Return the embeddings (1500, 24) that whitening was learnt on."""
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((1500, 24)) @ np.diag(np.linspace(2, 0.2, 24))
    return rows.astype(np.float32)


def _kept(query: int, grade: str) -> bool:
    """Say whether a query has items of a grade: some have none of the easy or hard ones."""
    return not (grade == "easy" and query % 7 == 0) and not (grade == "hard" and query % 11 == 3)


def _coarse(
    generator: np.random.Generator, owner: np.ndarray, centres: int, changed: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return centres (C, 6) and rows (N, 6) near those of their owners, of small whole numbers."""
    middle = generator.integers(-1, 2, (centres, 6))
    size = (len(owner), 6)
    rows = middle[owner] + (generator.random(size) < changed) * generator.integers(-1, 2, size)
    middle = middle.copy()
    for part in (middle, rows):
        part[(part == 0).all(1), 0] = 1
    return middle, rows


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
