"""Triplets mined from a pool, against a search over all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.input.samplers import check, create_sampler

SIZES = [1, 2, 3, 6, 1, 2, 3, 6, 1, 2, 3, 6]
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(12), SIZES))


def make(batch_size=8, seed=0, labels=LABELS, **params):
    params = {"pool": 30, "triplets": 64, "hardest": 4, **params}
    batches = {"batch_size": batch_size, "seed": seed}
    return create_sampler("mined_triplets", params, labels=labels, categories=None, **batches)


def unit_rows(count, seed=1, width=3):
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def hardest(pool, rows, margin, keep):
    """{anchor: its costliest triplets} by comparing all triplets of the pool, one by one."""
    found = {}
    for anchor, row in zip(pool.tolist(), rows, strict=True):
        distance = dict(zip(pool.tolist(), ((rows - row) ** 2).sum(axis=1), strict=True))
        costs = {}
        for positive, negative in itertools.permutations(pool.tolist(), 2):
            same_class = LABELS[positive] == LABELS[anchor] and positive != anchor
            if same_class and LABELS[negative] != LABELS[anchor]:
                costs[positive, negative] = margin + distance[positive] - distance[negative]
        best = sorted(costs, key=costs.get, reverse=True)[:keep]
        costly = {pair for pair in best if costs[pair] > 0}
        if costly:
            found[anchor] = costly
    return found


def test_every_triplet_is_among_the_costliest_of_its_anchor():
    sampler = make(triplets=512)
    pool = sampler.pool(3)
    rows = unit_rows(len(pool))
    expected = hardest(pool, rows, 0.1, 4)
    drawn = np.concatenate(sampler.mined(3, rows)).reshape(-1, 3)
    for anchor, positive, negative in drawn.tolist():
        assert (positive, negative) in expected[anchor]
    anchors = set(drawn[:, 0].tolist())
    assert anchors == set(expected)  # 512 draws meet every image that has a costly triplet


def test_batches_are_whole_triplets_of_the_asked_number():
    sampler = make(batch_size=16)
    batches = sampler.mined(0, unit_rows(30))
    assert [batch.shape for batch in batches] == [(48,)] * 4
    assert all(batch.dtype == np.int64 for batch in batches)


def test_an_epoch_follows_from_seed_number_and_embeddings():
    rows = unit_rows(30)
    one = make().mined(5, rows)
    again = make().mined(5, rows)
    assert np.array_equal(one, again)
    other_number = make().mined(6, rows)
    other_seed = make(seed=1).mined(5, rows)
    assert not np.array_equal(one, other_number)
    assert not np.array_equal(one, other_seed)
    assert not np.array_equal(make().pool(5), make().pool(6))


def test_a_pool_larger_than_the_data_is_the_data():
    sampler = make(pool=10_000)
    assert np.array_equal(sampler.pool(0), np.arange(len(LABELS)))


def test_where_no_triplet_costs_anything_the_hardest_are_drawn():
    corners = np.eye(12, dtype=np.float32)
    sampler = make()
    rows = corners[LABELS[sampler.pool(0)]]
    drawn = np.concatenate(sampler.mined(0, rows)).reshape(-1, 3)
    anchors, positives, negatives = LABELS[drawn].T
    assert (anchors == positives).all()
    assert (anchors != negatives).all()


def test_an_epoch_of_no_whole_number_of_batches_is_refused_early():
    (problem,) = check("mined_triplets", {"triplets": 100}, 64)
    assert "choose a divisor of 100" in str(problem)


def test_data_without_a_triplet_is_refused():
    with pytest.raises(DataError, match="has no triplet"):
        make(labels=np.arange(36))
