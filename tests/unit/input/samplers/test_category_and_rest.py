"""Half a batch of one category, half of classes without one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.input.samplers import check, create_sampler

# categories 0 (12 classes), 1 (2 classes) and 2, the classes without a category (20), of 5 images each
CLASS_CATEGORY = np.repeat([0, 1, 2], [12, 2, 20])
LABELS = np.repeat(np.arange(34), 5)
CATEGORIES = np.repeat(CLASS_CATEGORY, 5)


def make(batch_size=32, labels=LABELS, categories=CATEGORIES):
    return create_sampler(
        "category_and_rest", {}, labels=labels, categories=categories, batch_size=batch_size, seed=0
    )


def test_each_batch_has_half_of_one_category_or_all_of_a_small_one_and_the_rest_without():
    seen = set()
    for batch in make().epoch(0):
        labels, counts = np.unique(LABELS[batch], return_counts=True)
        assert len(labels) == 8 and set(counts) == {4}
        found = CLASS_CATEGORY[labels].tolist()
        (category,) = set(found) - {2}
        seen.add(category)
        assert found.count(category) == {0: 4, 1: 2}[category]
    assert seen == {0, 1}


def test_a_category_has_its_turn_as_often_as_its_images_fill_half_batches():
    batches = make().epoch(0)
    turns = [set(CATEGORIES[batch].tolist()) - {2} for batch in batches]
    assert turns.count({0}) == 2 * 60 // 32 and turns.count({1}) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"categories": None}, "needs two categories or more"),
        ({"categories": np.zeros_like(LABELS)}, "needs two categories or more"),
        ({"batch_size": 96}, "has 20 classes of 4 images in the last category"),
    ],
)
def test_data_that_cannot_fill_a_batch_are_refused(changes, words):
    with pytest.raises(DataError, match=words):
        make(**changes)


def test_a_batch_of_an_odd_number_of_classes_is_refused():
    assert "choose a multiple of 8" in str(check("category_and_rest", {}, 36)[0])
    assert check("category_and_rest", {}, 40) == []
