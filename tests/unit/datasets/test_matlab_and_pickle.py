"""MATLAB and pickle files of plain data, however many values they have; objects are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.io import savemat

from benchmark.datasets.io.lists import (
    read_matlab,
    read_plain_pickle,
    texts,
    whole_numbers,
)


def write_matlab(path, compressed=False, dtype=np.float64):
    cells = np.empty((1, 3), dtype=object)
    cells[0] = ["abc", "d", "ü" * 40]
    variables = {
        "cids": cells,
        "cluster": np.array([[1, 1, 2]], dtype),
        "other": {"a": 1},
    }
    savemat(path, variables, do_compression=compressed)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
def test_numbers_and_cells_of_text_are_read(tmp_path, compressed, dtype):
    path = write_matlab(tmp_path / "a.mat", compressed, dtype)
    cids, cluster = read_matlab(path, "cids", "cluster")
    assert texts(cids) == ["abc", "d", "ü" * 40]
    assert whole_numbers(cluster).tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="not text"):
        texts(cluster)


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_structs_give_a_list_for_each_field(tmp_path, compressed):
    rows = np.empty((1, 2), dtype=[("path", object), ("class", object)])
    rows[0] = [
        ("a/1.jpg", np.array([[7]], np.uint8)),
        ("b/2.jpg", np.array([[300]], np.uint16)),
    ]
    savemat(tmp_path / "a.mat", {"annotations": rows}, do_compression=compressed)
    (found,) = read_matlab(tmp_path / "a.mat", "annotations")
    assert found["path"].tolist() == ["a/1.jpg", "b/2.jpg"]
    assert whole_numbers(found["class"]).tolist() == [7, 300]


def test_a_single_struct_and_a_single_text_stay_arrays(tmp_path):
    rows = np.empty((1, 1), dtype=[("path", object), ("class", object)])
    rows[0] = [("a/1.jpg", np.array([[7]], np.uint8))]
    cells = np.empty((1, 1), dtype=object)
    cells[0] = ["abc"]
    savemat(tmp_path / "a.mat", {"annotations": rows, "cids": cells})
    found, cids = read_matlab(tmp_path / "a.mat", "annotations", "cids")
    assert found["path"].tolist() == ["a/1.jpg"]
    assert whole_numbers(found["class"]).tolist() == [7]
    assert texts(cids) == ["abc"]


def test_a_missing_variable_is_named(tmp_path):
    with pytest.raises(KeyError, match="absent"):
        read_matlab(write_matlab(tmp_path / "a.mat"), "cids", "absent")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300, 1.5, 1 + 2j, "x", None])
def test_numbers_that_are_not_whole_are_refused(wrong):
    with pytest.raises((ValueError, TypeError)):
        whole_numbers([1, wrong])


@pytest.fixture
def read(tmp_path):
    """Return a function that writes bytes or pickles an object, and reads the file."""

    def run(content: object, protocol: int = 2) -> object:
        path = tmp_path / "x.pkl"
        if not isinstance(content, bytes):
            content = pickle.dumps(content, protocol)
        path.write_bytes(content)
        return read_plain_pickle(path)

    return run


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("module", ["numpy.core", "numpy._core"])
def test_plain_pickles_of_every_protocol_and_numpy_are_read(read, protocol, module):
    values = {
        "list": [1, 2.5, "three", None, True],
        "tuple": (1,),
        "set": {4},
        "bytes": b"\0\xff",
    }
    arrays = {
        "array": np.arange(6, dtype=">i4").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "scalar": np.float64(0.5),
        "empty": np.empty((0,), np.int64),
        "booleans": np.array([True, False]),
    }
    content = pickle.dumps({**values, **arrays}, protocol=protocol)
    if protocol < 4:  # later protocols store the length beside the name
        content = content.replace(b"numpy._core", module.encode())
    found = read(content)
    for key, value in values.items():
        assert found[key] == value
    for key, array in arrays.items():
        assert found[key] == array.tolist()


def test_arrays_of_objects_are_refused(read):
    with pytest.raises(ValueError, match="OBJECT array"):
        read(np.array([[1], "b"], dtype=object), 5).tolist()
