"""queries.npz: kept, read back, and refused when it is damaged or belongs to something else."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import RunError
from benchmark.core.query_scores import (
    QueryScores,
    joined,
    read_query_scores,
    write_query_scores,
)
from benchmark.core.records import QUERIES

DIGEST = "0123456789abcdef"
NEAREST = np.array([1, 3, 1, 20])
AVERAGE = np.array([1.0, 0.5, 0.75, 0.05])
SCORES = QueryScores(
    np.arange(4), np.array([7, 7, 9, 9]), NEAREST, {"map": AVERAGE, "map_at_r": AVERAGE / 2}
)
LAST = {"test": {"recall_at_1": 0.5, "recall_at_10": 0.75, "map": 0.575, "map_at_r": 0.2875}}


@pytest.fixture
def folder(tmp_path):
    write_query_scores(tmp_path, DIGEST, {"test": SCORES})
    return tmp_path


def test_recall_at_any_k_and_averages_come_back(folder):
    found = read_query_scores(folder, DIGEST, LAST)["test"]
    assert found.of("recall_at_1").tolist() == [1, 0, 1, 0]
    assert found.of("recall_at_10").tolist() == [1, 1, 1, 0]
    assert found.of("map") == pytest.approx(AVERAGE)
    assert found.of("loss") is None
    assert found.label.tolist() == [7, 7, 9, 9]


def test_a_run_from_before_the_file_has_none(tmp_path):
    assert read_query_scores(tmp_path, DIGEST, LAST) is None


def test_repeats_are_joined_under_the_numbers_of_their_queries():
    found = joined([SCORES, SCORES], [np.arange(4), np.array([3, 2, 1, 0])])
    assert found.query.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
    assert found.of("map").mean() == pytest.approx(0.575)


def _rewritten(folder, **changes):
    with np.load(folder / QUERIES) as content:
        arrays = dict(content) | changes
    arrays = {name: values for name, values in arrays.items() if values is not None}
    np.savez_compressed(folder / QUERIES, **arrays)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"test/map": None, "test/map_at_r": None, "test/nearest": None}, "lacks test/nearest"),
        ({"test/query": np.arange(4.0)}, "float64"),
        ({"test/map": np.zeros(3, np.float32)}, "differ in length"),
        ({"test/map": np.array([2, 0, 0, 0.3], np.float32)}, "not in"),
        ({"test/map": np.array([np.nan] * 4, np.float32)}, "not in"),
        ({"test/nearest": np.ones(4, np.int32)}, "mean recall_at_1 of 'test' is 1.000000"),
        ({"spec_digest": np.array("f" * 16)}, "of specification ffff"),
        ({"test/query": np.array([{}], dtype=object)}, "of type object"),
    ],
)
def test_what_is_wrong_inside_is_one_error_with_the_path(folder, changes, words):
    _rewritten(folder, **changes)
    with pytest.raises(RunError, match=words) as error:
        read_query_scores(folder, DIGEST, LAST)
    assert str(folder / QUERIES) in str(error.value) and "delete it" in str(error.value)


def test_every_cut_and_each_changed_byte_is_refused_or_harmless(folder):
    whole = (folder / QUERIES).read_bytes()
    for size in range(0, len(whole), 97):
        (folder / QUERIES).write_bytes(whole[:size])
        with pytest.raises(RunError):
            read_query_scores(folder, DIGEST, LAST)
    for at in range(0, len(whole), 41):
        (folder / QUERIES).write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            found = read_query_scores(folder, DIGEST, LAST)["test"]
        except RunError:
            continue
        assert found.of("map") == pytest.approx(AVERAGE)
