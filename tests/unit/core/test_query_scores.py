"""queries.npz: kept, read back, and refused when it is damaged or belongs to something else."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.results import (
    QueryScores,
    joined,
    read_query_scores,
    write_query_scores,
)

DIGEST = "0123456789abcdef"
NEAREST = np.array([1, 3, 1, 20])
AVERAGE = np.array([1.0, 0.5, 0.75, 0.05])
SCORES = QueryScores(
    np.arange(4), np.array([7, 7, 9, 9]), NEAREST, {"map": AVERAGE, "map_at_r": AVERAGE / 2}
)


@pytest.fixture
def folder(tmp_path):
    write_query_scores(tmp_path, DIGEST, {"test": SCORES})
    return tmp_path


def test_recall_at_any_k_and_averages_come_back(folder):
    found = read_query_scores(folder, DIGEST)["test"]
    assert found.of("recall_at_1").tolist() == [1, 0, 1, 0]
    assert found.of("recall_at_10").tolist() == [1, 1, 1, 0]
    assert found.of("map") == pytest.approx(AVERAGE)
    assert found.of("loss") is None
    assert found.label.tolist() == [7, 7, 9, 9]


def test_a_run_from_before_the_file_has_none(tmp_path):
    assert read_query_scores(tmp_path, DIGEST) is None


def test_repeats_are_joined_under_the_numbers_of_their_queries():
    found = joined([SCORES, SCORES], [np.arange(4), np.array([3, 2, 1, 0])])
    assert found.query.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
    assert found.of("map").mean() == pytest.approx(0.575)


def test_scores_of_another_specification_are_none(folder):
    assert read_query_scores(folder, "f" * 16) is None
