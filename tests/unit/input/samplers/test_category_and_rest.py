"""Half a batch of one category, half of classes without one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.input.samplers import create_sampler

# categories 0 (12 classes), 1 (2 classes) and 2, the classes without a category (20), of 5 images
CLASS_CATEGORY = np.repeat([0, 1, 2], [12, 2, 20])
LABELS = np.repeat(np.arange(34), 5)
CATEGORIES = np.repeat(CLASS_CATEGORY, 5)


@pytest.fixture
def batches():
    sampler = create_sampler(
        "category_and_rest", {}, labels=LABELS, categories=CATEGORIES, batch_size=32, seed=0
    )
    return sampler.epoch(0)


def test_half_of_each_batch_comes_from_one_category_and_half_from_the_rest(batches):
    for batch in batches:
        counts = np.bincount(CATEGORIES[batch], minlength=3)
        assert counts[2] == 16 and sorted(counts[:2]) == [0, 16]


def test_a_category_has_its_turns_rounded_up_and_in_a_row(batches):
    turns = [int(CATEGORIES[batch].min()) for batch in batches]
    assert turns == [0, 0, 0, 0, 1]  # 2 x 60 / 32 = 3.75 and 2 x 10 / 32 = 0.625


def test_a_small_category_fills_its_half_with_its_images_again(batches):
    own = batches[-1][CATEGORIES[batches[-1]] == 1]
    assert sorted(np.unique(own, return_counts=True)[1].tolist()) == [1] * 4 + [2] * 6


def test_the_rest_is_walked_through_whole_classes(batches):
    rest = np.concatenate([batch[CATEGORIES[batch] == 2] for batch in batches])
    assert len(rest) == len(set(rest.tolist())) == 80  # of 100: no image comes twice
    assert len(np.unique(LABELS[rest])) in (16, 17)
