"""Pickle files: plain data of every protocol is read, and nothing that a pickle names is called."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from benchmark.datasets.io.matlab_and_pickle import read_plain_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes bytes or pickles an object, and reads the file."""

    def run(content: object, protocol: int = 2) -> object:
        path = tmp_path / "x.pkl"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
        return read_plain_pickle(path)

    return run


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("module", ["numpy.core", "numpy._core"])
def test_plain_pickles_of_every_protocol_and_numpy_are_read(read, protocol, module):
    values = {"list": [1, 2.5, "three", None, True], "tuple": (1,), "set": {4}, "bytes": b"\0\xff"}
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
    assert {key: found[key] for key in values} == values
    assert {key: found[key] for key in arrays} == {k: each.tolist() for k, each in arrays.items()}


class Call:
    """Call a function when it is unpickled without care."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_wants_to_run_code_runs_nothing(read, tmp_path, protocol):
    trace = tmp_path / "trace"
    with pytest.raises(pickle.UnpicklingError, match="could run code"):
        read({"imlist": Call(open, str(trace), "w")}, protocol)
    assert not trace.exists()


def test_arrays_of_objects_are_refused(read):
    with pytest.raises(ValueError, match="OBJECT array"):
        read(np.array([[1], "b"], dtype=object), 5).tolist()
