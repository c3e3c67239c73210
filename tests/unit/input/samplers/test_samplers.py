"""Samplers: epochs are pure functions of seed and number, and hold what their names promise."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.input.samplers import SAMPLERS, check, create_sampler

LABELS = np.repeat(np.arange(40), [3, 4, 5, 8, 9] * 8)
CATEGORIES = LABELS // 10


def make(name, batch_size=16, seed=0, labels=LABELS, categories=CATEGORIES, **params):
    return create_sampler(
        name, params, labels=labels, categories=categories, batch_size=batch_size, seed=seed
    )


@pytest.mark.parametrize("name", ["m_per_class", "category_pairs", "random"])
def test_epoch_depends_on_seed_and_number_alone(name):
    first, again, other = make(name), make(name), make(name, seed=1)
    first.epoch(0)
    assert np.array_equal(np.concatenate(first.epoch(3)), np.concatenate(again.epoch(3)))
    assert not np.array_equal(np.concatenate(first.epoch(3)), np.concatenate(first.epoch(4)))
    assert not np.array_equal(np.concatenate(first.epoch(3)), np.concatenate(other.epoch(3)))


@pytest.mark.parametrize("name", [entry.name for entry in SAMPLERS])
def test_batches_have_the_asked_size_and_no_image_twice(name):
    for batch in make(name).epoch(0):
        assert len(batch) == len(set(batch.tolist())) == 16


def test_m_per_class_uses_each_class_until_too_few_images_are_left():
    sampler = make("m_per_class", batch_size=8)
    batches = sampler.epoch(0)
    used = np.concatenate(batches)
    assert len(used) == len(set(used.tolist()))
    per_class = np.bincount(LABELS[used], minlength=40)
    sizes = np.bincount(LABELS)
    assert (per_class % 4 == 0).all()
    assert (per_class <= sizes // 4 * 4).all()
    # at the end fewer than two classes can still fill their half of a batch
    assert ((sizes // 4 * 4 - per_class) > 0).sum() < 2


def test_m_per_class_batch_holds_m_of_each_class():
    for batch in make("m_per_class").epoch(0):
        assert set(np.unique(LABELS[batch], return_counts=True)[1].tolist()) == {4}


def test_category_pairs_batches_come_from_two_categories_half_each():
    sampler = make("category_pairs", batches_per_pair=2)
    batches = sampler.epoch(0)
    pairs = set()
    for batch in batches:
        categories, counts = np.unique(CATEGORIES[batch], return_counts=True)
        assert counts.tolist() == [8, 8]
        pairs.add(tuple(categories.tolist()))
    assert len(pairs) == 6
    assert len(batches) == 12


def test_category_pairs_without_categories_says_what_to_use():
    with pytest.raises(DataError, match="m_per_class"):
        make("category_pairs", categories=None)


@pytest.mark.parametrize(
    ("name", "size"), [("m_per_class", 10), ("category_pairs", 12), ("m_per_class", 4)]
)
def test_batch_size_that_does_not_fit_is_reported_without_data(name, size):
    (problem,) = check(name, {}, size)
    assert str(size) in problem.message


def test_too_few_classes_for_one_batch_is_an_error():
    with pytest.raises(DataError, match="no batch"):
        make("m_per_class", batch_size=400)


def test_unknown_sampler_names_the_nearest():
    assert "did you mean 'm_per_class'" in str(check("m_per_clas", {}, 32)[0])
