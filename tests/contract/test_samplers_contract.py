"""What every registered sampler promises, plugins included."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from benchmark.core.options import schema_of
from benchmark.input.samplers import SAMPLERS, check, create_sampler

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(8), range(35, 43)))
CATEGORIES = LABELS // 4
SIZES = (16, 32)
# a batch of mined triplets has three images for each one asked for, some of them twice
PURE = [each.name for each in SAMPLERS if not each.target.pooled]
EVERY = pytest.mark.parametrize("name", PURE)


def make(name: str, batch_size: int, seed: int = 0):
    return create_sampler(
        name, {}, labels=LABELS, categories=CATEGORIES, batch_size=batch_size, seed=seed
    )


def stream(sampler, epoch: int) -> list[list[int]]:
    return [batch.tolist() for batch in sampler.epoch(epoch)]


@EVERY
def test_entry_has_options_with_help_a_docstring_and_a_display_name(name):
    entry = SAMPLERS[name]
    assert entry.display
    assert entry.target.__doc__
    assert dataclasses.is_dataclass(entry.target.Config)
    assert all(
        "description" in option for option in schema_of(entry.target.Config)["properties"].values()
    )


@EVERY
@pytest.mark.parametrize("size", SIZES)
def test_every_batch_is_int64_of_the_asked_size_with_images_that_exist(name, size):
    assert check(name, {}, size) == []
    batches = make(name, size).epoch(0)
    assert batches
    for batch in batches:
        assert batch.dtype == np.int64
        assert batch.shape == (size,)
        assert len(set(batch.tolist())) == size
        assert batch.min() >= 0
        assert batch.max() < len(LABELS)


@EVERY
def test_an_epoch_follows_from_seed_and_number_whatever_was_asked_before(name):
    first = make(name, 16)
    fresh = make(name, 16)
    for epoch in (0, 2, 1):
        first.epoch(epoch)
    assert stream(first, 5) == stream(fresh, 5)
    assert stream(first, 5) != stream(first, 6)
    assert stream(first, 5) != stream(make(name, 16, seed=1), 5)


@EVERY
def test_the_global_generator_neither_matters_nor_moves(name):
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    first = stream(make(name, 16), 0)
    assert np.array_equal(np.random.get_state()[1], before)
    np.random.seed(2)
    assert stream(make(name, 16), 0) == first


@EVERY
def test_the_given_labels_are_not_changed(name):
    labels = LABELS.copy()
    categories = CATEGORIES.copy()
    create_sampler(name, {}, labels=labels, categories=categories, batch_size=16, seed=0).epoch(0)
    assert np.array_equal(labels, LABELS)
    assert np.array_equal(categories, CATEGORIES)


def test_making_batches_does_not_import_torch():
    code = """
import sys, numpy as np
from benchmark.input.samplers import SAMPLERS, create_sampler
labels = np.repeat(np.arange(8), 48)
for name in SAMPLERS.names():
    if not SAMPLERS[name].target.pooled:
        data = {"labels": labels, "categories": labels // 4}
        create_sampler(name, {}, **data, batch_size=16, seed=0).epoch(0)
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
