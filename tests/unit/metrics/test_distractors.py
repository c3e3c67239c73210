"""Landmark retrieval among distractors, in blocks: the same numbers as one large gallery."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.core.recipe import EvaluationConfig, QueryExpansionConfig
from benchmark.datasets.base import ImageSet, Judgements, Protocol
from benchmark.metrics import expand_queries, landmark_map, nearest_neighbours, search
from benchmark.training.evaluate import EmbeddedProtocol

QUERIES, ITEMS, OTHERS, WIDTH = 7, 40, 150, 12


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(search, "BLOCK", 32)  # five blocks of distractors, the last one smaller


@pytest.fixture
def made():
    """Return unit rows of queries, gallery and distractors with ties, and judgements."""
    rng = np.random.default_rng(5)
    rows = rng.integers(-2, 3, (QUERIES + ITEMS + OTHERS, WIDTH)).astype(np.float32)
    rows[QUERIES + ITEMS : QUERIES + ITEMS + 20] = rows[QUERIES : QUERIES + 20]  # exact doubles
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    orders = [rng.permutation(ITEMS) for _ in range(QUERIES)]
    judgements = Judgements(tuple(o[:5] for o in orders), tuple(o[5:9] for o in orders))
    return np.split(rows, [QUERIES, QUERIES + ITEMS]), judgements


def protocol_of(judgements) -> Protocol:
    def images(count):
        pixels = np.zeros((count, 8, 8, 1), np.uint8)
        return ImageSet(np.arange(count), list(map(str, range(count))), pixels=pixels)

    return Protocol(images(QUERIES), images(ITEMS), judgements, (), images(OTHERS))


def test_map_is_that_of_one_gallery_with_the_distractors_behind(made):
    (query, gallery, others), judgements = made
    whole = landmark_map(query, np.concatenate([gallery, others]), judgements)
    # ranks are equal, so that only the order of the sum could differ
    assert landmark_map(query, gallery, judgements, others) == pytest.approx(whole, abs=1e-12)
    assert whole < landmark_map(query, gallery, judgements)


def test_expanded_queries_take_neighbours_among_the_distractors(made):
    (query, gallery, others), _ = made
    whole = expand_queries(query, np.concatenate([gallery, others]), 2.0, 10)
    parts = expand_queries(query, gallery, 2.0, 10, others)
    # products of matrices of other shapes differ in the last bits
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    assert np.abs(parts - expand_queries(query, gallery, 2.0, 10)).max() > 0.01


def test_neighbours_of_blocks_are_those_of_one_gallery(made):
    (query, gallery, others), _ = made
    whole = nearest_neighbours(query, np.arange(QUERIES), 9, np.concatenate([gallery, others]))
    parts = search.nearest_in_blocks(query, np.arange(QUERIES), 9, (gallery, others))
    np.testing.assert_array_equal(parts[0], whole[0])
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-6)


def test_a_protocol_measures_shows_and_ranks_with_its_distractors(made):
    (query, gallery, others), judgements = made
    protocol = protocol_of(judgements)
    item = EmbeddedProtocol(protocol, query, gallery, others)
    config = EvaluationConfig(query_expansion=QueryExpansionConfig(alpha=2.0, k=10))
    scores = item.measure("hard", config).scores
    assert scores["hard"]["map"] == landmark_map(query, gallery, judgements, others)
    assert set(scores) == {"hard", "hard+aqe"}
    every = np.arange(QUERIES)
    items, _, matches = item.nearest(every, 8)
    assert (items >= ITEMS).any() and not matches[items >= ITEMS].any()
    joined = np.concatenate([gallery, others])
    whole = EmbeddedProtocol(Protocol(protocol.query, None, judgements), query, joined)
    for ranks, expected in zip(
        item.positive_ranks(every), whole.positive_ranks(every), strict=True
    ):
        assert ranks.tolist() == expected.tolist()


def test_distractors_that_are_not_finite_are_noticed(made):
    (query, gallery, others), judgements = made
    others[70, 3] = np.nan
    assert not EmbeddedProtocol(protocol_of(judgements), query, gallery, others).finite
    with pytest.raises(DataError, match="not finite"):
        landmark_map(query, gallery, judgements, others)
