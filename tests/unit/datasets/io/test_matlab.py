"""MATLAB files: what scipy writes is read alike; damage ends in an exception, never in a crash."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csr_matrix

from benchmark.datasets.io.matlab import read_matlab, whole_numbers

NAMES = ("cids", "cluster")


def write(path, compressed=False, dtype=np.float64):
    cells = np.empty((1, 3), dtype=object)
    cells[0] = ["abc", "d", "ü" * 40]
    variables = {"cids": cells, "cluster": np.array([[1, 1, 2]], dtype), "other": {"a": 1}}
    savemat(path, variables, do_compression=compressed)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
def test_numbers_and_cells_of_text_are_read(tmp_path, compressed, dtype):
    found = read_matlab(write(tmp_path / "a.mat", compressed, dtype), NAMES)
    assert found["cids"] == ["abc", "d", "ü" * 40]
    assert found["cluster"].tolist() == [1, 1, 2]


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_structs_give_a_list_for_each_field(tmp_path, compressed):
    rows = np.empty((1, 2), dtype=[("path", object), ("class", object)])
    rows[0] = [("a/1.jpg", np.array([[7]], np.uint8)), ("b/2.jpg", np.array([[300]], np.uint16))]
    savemat(tmp_path / "a.mat", {"annotations": rows}, do_compression=compressed)
    found = read_matlab(tmp_path / "a.mat", ("annotations",))["annotations"]
    assert found["path"] == ["a/1.jpg", "b/2.jpg"]
    assert [value.tolist() for value in found["class"]] == [[7], [300]]


def test_a_missing_variable_is_named(tmp_path):
    with pytest.raises(ValueError, match="it has no absent"):
        read_matlab(write(tmp_path / "a.mat"), ("cids", "absent"))


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_is_an_exception(tmp_path, compressed):
    right, rng = write(tmp_path / "a.mat", compressed).read_bytes(), random.Random(0)
    failures = 0
    for _ in range(300):
        content = bytearray(right[: rng.choice([len(right), rng.randrange(1, len(right))])])
        for _ in range(rng.randrange(5)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (tmp_path / "a.mat").write_bytes(content)
        try:
            read_matlab(tmp_path / "a.mat", NAMES)
        except Exception:  # the dataset reports any of them
            failures += 1
    assert failures > 100


@pytest.mark.parametrize(
    "value",
    [csr_matrix([[1.0, 0.0, 2.0]]), np.array([1 + 2j, 1, 1]), np.array([{"a": 1}])],
    ids=["sparse", "complex", "a struct"],
)
def test_numbers_of_another_kind_are_not_misread(tmp_path, value):
    savemat(tmp_path / "a.mat", {"cluster": value})
    with pytest.raises(ValueError, match="cluster"):
        whole_numbers(read_matlab(tmp_path / "a.mat", ("cluster",))["cluster"])


def test_a_struct_in_a_field_is_no_number(tmp_path):
    rows = np.empty((1, 1), dtype=[("path", object), ("class", object)])
    rows[0] = [("a/1.jpg", {"b": 7})]
    savemat(tmp_path / "a.mat", {"annotations": rows})
    with pytest.raises(ValueError, match="annotations"):
        read_matlab(tmp_path / "a.mat", ("annotations",))
