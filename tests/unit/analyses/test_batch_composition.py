"""What a query meets in its batch, on the example that FastAP draws."""

from __future__ import annotations

import numpy as np

from benchmark.analyses.batch_composition import KINDS, composition, kinds_of


def test_the_batch_of_figure_6():
    # ten images: a bicycle of two images, another of three, and five chairs of two classes
    labels = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])
    categories = np.array([0] * 5 + [1] * 5)
    assert composition(labels, categories).iloc[0].to_dict() == {
        "query": 1,
        "neighbour": 1,
        "hard negative": 3,
        "easy negative": 5,
    }
    assert (composition(labels, categories).sum(axis=1) == 10).all()


def test_a_query_is_no_neighbour_of_itself():
    kinds = kinds_of(2, np.array([7, 8, 7]), np.array([0, 0, 0]))
    assert list(kinds) == ["neighbour", "hard negative", "query"] and set(kinds) <= set(KINDS)
