"""Shares of the sources of noise: exact squares, coverage, and sources without effect."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.stats.noise_sources import INTERACTION, SOURCES, augmentation_of, shares

SIZE = 6


def _square(weights, order, augmentation, rest, rng):
    index = np.add.outer(np.arange(SIZE), np.arange(SIZE)) % SIZE
    return (
        weights * rng.standard_normal(SIZE)[:, None]
        + order * rng.standard_normal(SIZE)[None]
        + augmentation * rng.standard_normal(SIZE)[index]
        + rest * rng.standard_normal((SIZE, SIZE))
    )


def test_every_pair_of_sources_meets_once():
    square = {(i, augmentation_of(i, j, SIZE)) for i in range(SIZE) for j in range(SIZE)}
    assert len(square) == SIZE * SIZE


@pytest.mark.parametrize("source", [0, 1, 2])
def test_a_single_source_has_the_whole_share(source):
    effects = [0.0] * 4
    effects[source] = 1.0
    found = shares(_square(*effects, np.random.default_rng(0)))
    assert found[source].source == SOURCES[source]
    assert found[source].share == pytest.approx(1.0)


def test_shares_sum_to_one_and_lie_in_their_intervals():
    found = shares(_square(1.0, 0.5, 0.2, 0.5, np.random.default_rng(3)))
    assert sum(each.share for each in found) == pytest.approx(1.0)
    assert [each.source for each in found] == [*SOURCES, INTERACTION]
    assert all(0 <= each.low <= each.share <= each.high <= 1 for each in found)


def test_intervals_cover_the_true_shares():
    true = np.array([1.0, 0.25, 0.04, 0.25]) / 1.54
    rng = np.random.default_rng(0)
    covered = np.mean(
        [
            [each.low <= truth <= each.high for each, truth in zip(found, true, strict=True)]
            for found in (shares(_square(1.0, 0.5, 0.2, 0.5, rng)) for _ in range(300))
        ],
        axis=0,
    )
    assert (covered > 0.9).all()  # 95% in theory, Monte Carlo error 1.3 points


def test_equal_runs_have_no_share_at_all():
    assert [each.share for each in shares(np.full((4, 4), 0.7))] == [0.0] * 4
