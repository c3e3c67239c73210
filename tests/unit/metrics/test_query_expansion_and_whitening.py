"""Alpha query expansion and PCA whitening, against their definitions written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.core.errors import DataError
from benchmark.metrics import expand_queries, learn_whitening, search


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def skewed(count: int, width: int, seed: int = 0) -> np.ndarray:
    """Unit rows around a common direction, with axes of very different spread."""
    rng = np.random.default_rng(seed)
    spread = 0.7 ** np.arange(width)
    return unit(
        rng.standard_normal((count, width))
        * spread
        @ np.linalg.qr(rng.standard_normal((width, width)))[0]
        + 1
    )


def test_expansion_worked_out_by_hand():
    query, gallery = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 1.0], [0.8, -0.6]])
    # the two nearest have similarity 0.8 and 0.6; squared they weigh 0.64 and 0.36
    total = np.array([1 + 0.64 * 0.8 + 0.36 * 0.6, -0.64 * 0.6 + 0.36 * 0.8])
    assert expand_queries(query, gallery, alpha=2, k=2)[0] == pytest.approx(
        total / np.linalg.norm(total), abs=1e-6
    )


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 12), alpha=st.sampled_from([0.5, 1.0, 2.0, 3.0])
)
def test_expansion_equals_its_formula(seed, k, alpha):
    rng = np.random.default_rng(seed)
    query, gallery = unit(rng.standard_normal((5, 4))), unit(rng.standard_normal((9, 4)))
    expected = []
    for row in query:
        scores = gallery @ row
        nearest = sorted(range(9), key=lambda item: (-scores[item], item))[:k]
        total = row + sum(max(scores[item], 0) ** alpha * gallery[item] for item in nearest)
        expected.append(total / np.linalg.norm(total))
    assert np.allclose(expand_queries(query, gallery, alpha, k), expected, atol=1e-5)


def test_alpha_zero_is_average_query_expansion():
    query, gallery = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 1.0]])
    total = np.array([1.6, 1.8])
    assert expand_queries(query, gallery, alpha=0, k=2)[0] == pytest.approx(
        total / np.linalg.norm(total), abs=1e-6
    )


def test_expansion_leaves_the_embeddings_it_was_given_alone():
    query, gallery = skewed(4, 6), skewed(10, 6, seed=1)
    before = query.copy(), gallery.copy()
    expand_queries(query, gallery, 2, 3)
    assert np.array_equal(query, before[0]) and np.array_equal(gallery, before[1])


@pytest.mark.parametrize("dimensions", [1, 5, 12])
def test_whitened_training_rows_have_identity_covariance(dimensions, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 37)
    rows = skewed(400, 12)
    projected = learn_whitening(rows, dimensions).project(rows)
    assert np.allclose(projected.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(np.cov(projected.T.astype(float)), np.eye(dimensions), atol=1e-4)


def test_whitening_equals_an_eigen_decomposition_written_out():
    train, test = skewed(300, 10), skewed(40, 10, seed=0)
    mean = train.astype(float).mean(axis=0)
    # singular values of the centered rows, instead of eigenvalues of their covariance
    _, singular, axes = np.linalg.svd(train.astype(float) - mean, full_matrices=False)
    expected = []
    for axis, size in zip(axes[:6], singular[:6], strict=True):
        sign = 1 if axis[np.abs(axis).argmax()] > 0 else -1
        expected.append([sign * (row - mean) @ axis / (size / np.sqrt(299)) for row in test])
    expected = np.array(expected).T
    learnt = learn_whitening(train, 6)
    assert np.allclose(learnt.project(test), expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(learnt(test), unit(expected), atol=1e-5)


def test_whitening_is_the_same_bits_again_and_for_rows_in_any_sign():
    rows = skewed(200, 8)
    first, again = learn_whitening(rows, 8), learn_whitening(rows.copy(), 8)
    assert np.array_equal(first.axes, again.axes) and np.array_equal(first.mean, again.mean)
    mirrored = learn_whitening(-rows, 8)
    assert np.allclose(mirrored.axes, first.axes) and np.allclose(mirrored.mean, -first.mean)


def test_axes_without_variance_give_zeros_and_a_warning(caplog):
    rows = skewed(5, 12)
    projected = learn_whitening(rows, 8).project(rows)
    assert "vary along 4 of the 8 dimensions" in caplog.text
    assert np.all(projected[:, 4:] == 0) and np.all(projected[:, :4].std(axis=0) > 0.5)


def test_collapsed_rows_stay_finite():
    assert np.isfinite(learn_whitening(np.ones((6, 4), np.float32) / 2, 3)(skewed(3, 4))).all()


def test_rows_that_are_not_finite_give_not_a_number_instead_of_an_error():
    rows = skewed(20, 4)
    rows[3, 1] = np.nan
    assert np.isnan(learn_whitening(rows, 2)(skewed(3, 4))).all()


def test_whitening_of_one_row_is_refused():
    with pytest.raises(DataError, match="two training images or more"):
        learn_whitening(np.ones((1, 4), np.float32), 2)
