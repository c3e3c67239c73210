"""Exact neighbours for the retrieval gallery."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.metrics import nearest_neighbours


def expected_neighbours(scores: np.ndarray, wanted: int) -> np.ndarray:
    return np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores))[
        :, :wanted
    ]


def random_rows(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_neighbours_in_a_gallery_are_the_highest_scores():
    query, gallery, queries = random_rows(20, 1), random_rows(90, 2), np.array([3, 17, 4])
    indices, scores = nearest_neighbours(query, queries, 7, gallery)
    product = query[queries] @ gallery.T
    assert indices.tolist() == expected_neighbours(product, 7).tolist()
    assert scores == pytest.approx(np.take_along_axis(product, indices, axis=1), abs=1e-6)


def test_without_a_gallery_the_query_is_left_out_by_its_index():
    query, queries = random_rows(50, 3), np.arange(0, 50, 5)
    indices, _ = nearest_neighbours(query, queries, 10)
    product = query[queries] @ query.T
    product[np.arange(len(queries)), queries] = -np.inf
    assert indices.tolist() == expected_neighbours(product, 10).tolist()


def test_equal_scores_come_in_the_order_of_their_index():
    query = np.eye(3, dtype=np.float32)[np.array([0, 1] * 40 + [2])]
    indices, scores = nearest_neighbours(query, np.array([4, 79, 80]), 5)
    assert indices.tolist() == [[0, 2, 6, 8, 10], [1, 3, 5, 7, 9], [0, 1, 2, 3, 4]]
    assert scores.tolist() == [[1.0] * 5, [1.0] * 5, [0.0] * 5]


def test_a_small_gallery_gives_all_it_has():
    query = random_rows(4, 5)
    assert nearest_neighbours(query, np.array([0, 1]), 10)[0].shape == (2, 3)
    assert nearest_neighbours(query, np.array([], dtype=int), 10)[0].shape == (0, 3)
    assert nearest_neighbours(query[:1], np.array([0]), 10)[0].shape == (1, 0)
