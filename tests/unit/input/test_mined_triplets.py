"""Triplets mined from a pool, against a search over all of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.input.samplers import check, create_sampler

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(12), [1, 2, 3, 6] * 3))


def make(batch_size=8, seed=0, labels=LABELS, **params):
    given = {"pool": 30, "triplets": 64, "hardest": 4, **params}
    return create_sampler(
        "mined_triplets", given, labels=labels, categories=None, batch_size=batch_size, seed=seed
    )


def unit_rows(count, seed=1, width=3):
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def hardest(pool, rows, margin, keep):
    """{anchor: its costliest triplets} by comparing all triplets of the pool, one by one."""
    places = range(len(pool))
    found = {}
    for a in places:
        costs = {}
        for p in places:
            for n in places:
                if p != a and LABELS[pool[p]] == LABELS[pool[a]] != LABELS[pool[n]]:
                    gap = ((rows[a] - rows[p]) ** 2).sum() - ((rows[a] - rows[n]) ** 2).sum()
                    costs[int(pool[p]), int(pool[n])] = margin + gap
        best = sorted(costs, key=costs.get, reverse=True)[:keep]
        found[int(pool[a])] = {pair for pair in best if costs[pair] > 0}
    return {anchor: pairs for anchor, pairs in found.items() if pairs}


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
    assert not np.array_equal(one, make().mined(6, rows))
    assert not np.array_equal(one, make(seed=1).mined(5, rows))
    assert not np.array_equal(make().pool(5), make().pool(6))


def test_a_pool_larger_than_the_data_is_the_data():
    assert np.array_equal(make(pool=10_000).pool(0), np.arange(len(LABELS)))


def test_where_no_triplet_costs_anything_the_hardest_are_drawn():
    corners = np.eye(12, dtype=np.float32)
    sampler = make()
    drawn = np.concatenate(sampler.mined(0, corners[LABELS[sampler.pool(0)]])).reshape(-1, 3)
    assert (LABELS[drawn[:, 0]] == LABELS[drawn[:, 1]]).all()
    assert (LABELS[drawn[:, 0]] != LABELS[drawn[:, 2]]).all()


def test_an_epoch_of_no_whole_number_of_batches_is_refused_early():
    (problem,) = check("mined_triplets", {"triplets": 100}, 64)
    assert "choose a divisor of 100" in str(problem)


def test_data_without_a_triplet_is_refused():
    with pytest.raises(DataError, match="has no triplet"):
        make(labels=np.arange(36))
