"""What is counted in batches, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from benchmark.analyses.batches import KINDS, composition, cut, half_width, kinds_of, shares


def test_the_batch_of_figure_6():
    # ten images: a bicycle of two images, another of three, and five chairs of two classes
    labels = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])
    categories = np.array([0] * 5 + [1] * 5)
    found = composition(labels, categories)
    assert found.iloc[0].to_dict() == {
        "query": 1,
        "neighbour": 1,
        "hard negative": 3,
        "easy negative": 5,
    }
    assert (found.sum(axis=1) == 10).all()


def test_a_query_is_no_neighbour_of_itself():
    kinds = kinds_of(2, np.array([7, 8, 7]), np.array([0, 0, 0]))
    assert list(kinds) == ["neighbour", "hard negative", "query"]
    assert set(kinds) <= set(KINDS)


@pytest.mark.parametrize("tau", [0.001, 0.01, 0.1, 1.0])
def test_at_the_edge_of_the_region_the_derivative_is_the_negligible_one(tau):
    p = expit(half_width(tau) / tau)
    assert p * (1 - p) / tau == pytest.approx(0.005, rel=1e-6)
    assert half_width(100.0) == 0.0, "there it never is more"


def test_shares_equal_eq_1_evaluated_entry_by_entry():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.repeat([0, 1, 2], 4)
    scores = rows @ rows.T
    tau = 0.05
    printed = []
    off = []
    mixed = []
    others = ~np.eye(12, dtype=bool)
    for query in range(12):
        p = expit(np.subtract.outer(scores[query], scores[query]) / tau)
        inside = p * (1 - p) / tau > 0.005
        same = labels == labels[query]
        printed.append(inside.mean())
        off.append(inside[others].mean())
        mixed.append(inside[np.ix_(same & others[query], ~same)].mean())
    found = shares(rows, labels, half_width(tau))
    assert found["printed"] == pytest.approx(np.mean(printed))
    assert found["off_diagonal"] == pytest.approx(np.mean(off))
    assert found["mixed"] == pytest.approx(np.mean(mixed))
    assert found["entries"] == pytest.approx(144 * np.mean(printed))


def test_cutting_a_batch_keeps_classes_together_and_uses_every_image_once():
    labels = np.tile(np.arange(4), 4)
    rows = np.arange(16.0)[:, None]
    (first, first_labels), (second, second_labels) = cut(rows, labels, 8)
    assert set(first_labels) == {0, 1}
    assert set(second_labels) == {2, 3}
    images = np.concatenate([first, second])
    assert sorted(images.ravel()) == list(range(16))
