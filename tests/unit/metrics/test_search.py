"""Neighbours, distractors in blocks, query expansion and whitening, against their definitions."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.core.errors import DataError
from benchmark.core.recipe import EvaluationConfig, QueryExpansionConfig
from benchmark.datasets.base import ImageSet, Judgements, Protocol
from benchmark.metrics import (
    expand_queries,
    landmark_scores,
    learn_whitening,
    nearest_neighbours,
    search,
)
from benchmark.training.evaluate import EmbeddedProtocol, measure


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def skewed(count: int, width: int, seed: int = 0) -> np.ndarray:
    """Unit rows around a common direction, with axes of very different spread."""
    rng = np.random.default_rng(seed)
    spread = 0.7 ** np.arange(width)
    rows = rng.standard_normal((count, width)) * spread
    rotation, _ = np.linalg.qr(rng.standard_normal((width, width)))
    return unit(rows @ rotation + 1)


def projected_by(whitening, rows: np.ndarray) -> np.ndarray:
    return (rows - whitening.mean) @ whitening.axes


def test_expansion_worked_out_by_hand():
    query = np.array([[1.0, 0.0]])
    gallery = np.array(
        [
            [0.6, 0.8],
            [0.0, 1.0],
            [0.8, -0.6],
        ]
    )
    # the two nearest have similarity 0.8 and 0.6; squared they weigh 0.64 and 0.36
    total = query[0] + 0.64 * gallery[2] + 0.36 * gallery[0]
    expected = total / np.linalg.norm(total)
    assert expand_queries(query, gallery, alpha=2, k=2)[0] == pytest.approx(expected, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 12),
    alpha=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
)
def test_expansion_equals_its_formula(seed, k, alpha):
    rng = np.random.default_rng(seed)
    query = unit(rng.standard_normal((5, 4)))
    gallery = unit(rng.standard_normal((9, 4)))
    before = query.copy()
    expected = []
    for row in query:
        scores = gallery @ row
        nearest = np.argsort(-scores, kind="stable")[:k]
        weights = np.maximum(scores[nearest], 0) ** alpha
        total = row + weights @ gallery[nearest]
        expected.append(total / np.linalg.norm(total))
    expanded = expand_queries(query, gallery, alpha, k)
    assert np.allclose(expanded, expected, atol=1e-5)
    assert np.array_equal(query, before)


@pytest.mark.parametrize("dimensions", [1, 5, 12])
def test_whitened_training_rows_have_identity_covariance(dimensions, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 37)
    rows = skewed(400, 12)
    whitening = learn_whitening(rows, dimensions)
    projected = projected_by(whitening, rows)
    assert np.allclose(whitening(rows), unit(projected), atol=1e-5)
    assert np.allclose(projected.mean(axis=0), 0, atol=1e-5)
    covariance = np.cov(projected.T.astype(float))
    assert np.allclose(covariance, np.eye(dimensions), atol=1e-4)


def test_whitening_equals_an_eigen_decomposition_written_out():
    train = skewed(300, 10)
    test = skewed(40, 10, seed=0)
    mean = train.astype(float).mean(axis=0)
    # singular values of the centered rows, instead of eigenvalues of their covariance
    _, singular, axes = np.linalg.svd(train - mean, full_matrices=False)
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    directions = (np.sign(largest) * axes)[:6]
    deviations = singular[:6] / np.sqrt(299)
    expected = (test - mean) @ directions.T / deviations
    learnt = learn_whitening(train, 6)
    assert np.allclose(learnt(test), unit(expected), atol=1e-5)


def test_whitening_is_the_same_bits_again_and_for_rows_in_any_sign():
    rows = skewed(200, 8)
    first = learn_whitening(rows, 8)
    again = learn_whitening(rows.copy(), 8)
    assert np.array_equal(first.axes, again.axes)
    assert np.array_equal(first.mean, again.mean)
    mirrored = learn_whitening(-rows, 8)
    assert np.allclose(mirrored.axes, first.axes)
    assert np.allclose(mirrored.mean, -first.mean)


def test_axes_without_variance_give_zeros_and_a_warning(caplog):
    rows = skewed(5, 12)
    projected = projected_by(learn_whitening(rows, 8), rows)
    assert "vary along 4 of the 8 dimensions" in caplog.text
    varying = projected[:, :4]
    constant = projected[:, 4:]
    assert np.all(constant == 0)
    assert np.all(varying.std(axis=0) > 0.5)


def test_rows_without_a_spread_or_a_number_do_not_raise_and_one_row_does():
    test = skewed(3, 4)
    equal = learn_whitening(np.full((6, 4), 0.5, np.float32), 3)
    assert np.isfinite(equal(test)).all()
    rows = skewed(20, 4)
    rows[3, 1] = np.nan
    without_number = learn_whitening(rows, 2)
    assert np.isnan(without_number(test)).all()
    with pytest.raises(DataError, match="two training images or more"):
        learn_whitening(rows[:1], 2)


def expected_neighbours(scores: np.ndarray, wanted: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :wanted]


def random_rows(count: int, seed: int) -> np.ndarray:
    return unit(np.random.default_rng(seed).standard_normal((count, 8)))


@pytest.fixture(params=["faiss", "torch"])
def library(request, monkeypatch):
    """The library that multiplies: faiss, and torch where faiss is not installed."""
    if request.param == "torch":
        monkeypatch.setitem(sys.modules, "faiss", None)


def test_neighbours_in_a_gallery_are_the_highest_scores(library):
    query = random_rows(20, 1)
    gallery = random_rows(90, 2)
    queries = np.array([3, 17, 4])
    indices, scores = nearest_neighbours(query, queries, 7, gallery)
    product = query[queries] @ gallery.T
    assert indices.tolist() == expected_neighbours(product, 7).tolist()
    assert scores == pytest.approx(np.take_along_axis(product, indices, axis=1), abs=1e-6)


def test_without_a_gallery_the_query_is_left_out_by_its_index(library):
    query = random_rows(50, 3)
    queries = np.arange(0, 50, 5)
    indices, _ = nearest_neighbours(query, queries, 10)
    product = query[queries] @ query.T
    product[np.arange(len(queries)), queries] = -np.inf
    assert indices.tolist() == expected_neighbours(product, 10).tolist()


def test_equal_scores_come_in_the_order_of_their_index(library):
    axes = np.eye(3, dtype=np.float32)
    query = axes[[0, 1] * 40 + [2]]
    indices, scores = nearest_neighbours(query, np.array([4, 79, 80]), 5)
    assert indices.tolist() == [
        [0, 2, 6, 8, 10],
        [1, 3, 5, 7, 9],
        [0, 1, 2, 3, 4],
    ]
    assert scores.tolist() == [
        [1.0] * 5,
        [1.0] * 5,
        [0.0] * 5,
    ]


@pytest.mark.parametrize(
    ("rows", "queries", "shape"),
    [
        (4, [0, 1], (2, 3)),
        (4, [], (0, 3)),
        (1, [0], (1, 0)),
    ],
)
def test_a_small_gallery_gives_all_it_has(library, rows, queries, shape):
    indices, _ = nearest_neighbours(random_rows(rows, 5), np.array(queries, dtype=int), 10)
    assert indices.shape == shape


QUERIES = 7
ITEMS = 40
OTHERS = 150
WIDTH = 12


@pytest.fixture
def made(monkeypatch):
    """Return unit rows of queries, gallery and distractors with ties, and judgements."""
    # five blocks of distractors, the last one smaller
    monkeypatch.setattr("benchmark.metrics.rows.BLOCK", 32)
    rng = np.random.default_rng(5)
    rows = rng.integers(-2, 3, (QUERIES + ITEMS + OTHERS, WIDTH)).astype(np.float32)
    query, gallery, others = np.split(rows, [QUERIES, QUERIES + ITEMS])
    others[:20] = rows[QUERIES : QUERIES + 20]  # exact doubles
    orders = [rng.permutation(ITEMS) for _ in range(QUERIES)]
    relevant = tuple(order[:5] for order in orders)
    ignored = tuple(order[5:9] for order in orders)
    return (unit(query), unit(gallery), unit(others)), Judgements(relevant, ignored)


def landmark_map(*sets) -> float:
    return landmark_scores(*sets)[0]


def protocol_of(judgements) -> Protocol:
    def images(count):
        pixels = np.zeros((count, 8, 8, 1), np.uint8)
        return ImageSet(np.arange(count), list(map(str, range(count))), pixels=pixels)

    return Protocol(images(QUERIES), images(ITEMS), judgements, (), images(OTHERS))


def test_map_is_that_of_one_gallery_with_the_distractors_behind(made):
    (query, gallery, others), judgements = made
    whole = landmark_map(query, np.concatenate([gallery, others]), judgements)
    in_blocks = landmark_map(query, gallery, judgements, others)
    # ranks are equal, so that only the order of the sum could differ
    assert in_blocks == pytest.approx(whole, abs=1e-12)
    without = landmark_map(query, gallery, judgements)
    assert whole < without


def test_expanded_queries_take_neighbours_among_the_distractors(made):
    (query, gallery, others), _ = made
    whole = expand_queries(query, np.concatenate([gallery, others]), 2.0, 10)
    parts = expand_queries(query, gallery, 2.0, 10, others)
    # products of matrices of other shapes differ in the last bits
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    without = expand_queries(query, gallery, 2.0, 10)
    assert np.abs(parts - without).max() > 0.01


def test_neighbours_of_blocks_are_those_of_one_gallery(made):
    (query, gallery, others), _ = made
    every = np.arange(QUERIES)
    indices, scores = nearest_neighbours(query, every, 9, np.concatenate([gallery, others]))
    of_blocks, scores_of_blocks = search.nearest_in_blocks(query, every, 9, (gallery, others))
    np.testing.assert_array_equal(of_blocks, indices)
    np.testing.assert_allclose(scores_of_blocks, scores, atol=1e-6)


def test_a_protocol_measures_shows_and_ranks_with_its_distractors(made):
    (query, gallery, others), judgements = made
    protocol = protocol_of(judgements)
    item = EmbeddedProtocol(protocol, query, gallery, others)
    config = EvaluationConfig(query_expansion=QueryExpansionConfig(alpha=2.0, k=10))
    scores = measure({"hard": item}, config, torch.device("cpu")).scores
    assert scores["hard"]["map"] == landmark_map(query, gallery, judgements, others)
    assert set(scores) == {"hard", "hard+aqe"}
    every = np.arange(QUERIES)
    items, _, matches = item.nearest(every, 8)
    is_distractor = items >= ITEMS
    assert is_distractor.any()
    assert not matches[is_distractor].any()
    joined = np.concatenate([gallery, others])
    whole = EmbeddedProtocol(Protocol(protocol.query, None, judgements), query, joined)
    ranks = item.positive_ranks(every)
    expected = whole.positive_ranks(every)
    assert np.array_equal(ranks, expected)


def test_distractors_that_are_not_finite_are_noticed(made):
    (query, gallery, others), judgements = made
    others[70, 3] = np.nan
    embedded = EmbeddedProtocol(protocol_of(judgements), query, gallery, others)
    assert not embedded.finite
    with pytest.raises(DataError, match="not finite"):
        landmark_map(query, gallery, judgements, others)
