"""Pickle files: plain data of every protocol is read, and nothing else is, however it is
dressed."""

from __future__ import annotations

import pickle
import pickletools

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets.io import unpickling
from benchmark.datasets.io.unpickling import read_plain_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
GLOBAL = b"\x80\x02cnumpy\ndtype\n"
STATE = b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"  # of a plain dtype


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
        "empty": np.empty((0, 3)),
        "names": np.array(["a", "bc"]),
        "bytes array": np.array([b"a"]),
        "booleans": np.array([True, False]),
    }
    content = pickle.dumps({**values, **arrays}, protocol=protocol)
    if protocol < 4:  # later protocols store the length beside the name
        content = content.replace(b"numpy._core", module.encode())
    found = read(content)
    assert {key: found[key] for key in values} == values
    for key, array in arrays.items():
        assert np.array_equal(found[key], array)
        assert found[key].dtype == array.dtype


def shared(levels: int, parts: int) -> list:
    """Return a list that is small in a file, and has ``parts ** levels`` leaves."""
    value: list = [1]
    for _ in range(levels):
        value = [value] * parts
    return value


def itself() -> list:
    value: list = []
    value.append(value)
    return value


WIDE = b")" + b"2\x86" * 70  # the tuple (t, t) of (t, t) of ...: 2^70 parts
INTEGERS = b"\x80\x02cnumpy.core.multiarray\nscalar\n" + GLOBAL[2:] + b"U\x02i8K\x00K\x01\x87R"

REFUSED = {
    "deep tuple as a key": b"\x80\x02})" + b"\x85" * 1_000_000 + b"K\x01s.",
    "wide tuple as a key": b"\x80\x02}" + WIDE + b"K\x01s.",
    "wide tuple among keys": b"\x80\x02}(" + WIDE + b"K\x01u.",
    "wide tuple as a key of protocol 0": b"(" + WIDE + b"K\x01d.",
    "wide tuple in a set": b"\x80\x04\x8f(" + WIDE + b"\x90.",
    "wide tuple in a frozen set": b"\x80\x04(" + WIDE + b"\x91.",
    "wide tuple in a set of protocol 2": b"\x80\x02c__builtin__\nset\n]" + WIDE + b"a\x85R.",
    "wide tuple as a dtype": GLOBAL + WIDE + b"\x85R.",
    "wide tuple as the dtype of an array": b"\x80\x02cnumpy.core.multiarray\nscalar\n"
    + WIDE
    + b"K\x01\x86R.",
    "number as the content of an array": INTEGERS + STATE + b"\x8a\x05\0\0\0\0\x02\x86R.",
    "object array": np.array([[1], "b"], dtype=object),
    "structured array": np.zeros(1, dtype=[("a", "i4")]),
    "structured array of objects": np.zeros(1, dtype=[("a", object)]),
    "subarray": np.zeros(1, dtype=[("a", "i4", 3)]),
    "dates": np.zeros(1, dtype="M8[s]"),
    "complex numbers": np.zeros(1, dtype="c16"),
    "dtype": np.dtype("i4"),
    "raw bytes given fields of objects": GLOBAL
    + b"U\x02V8K\x00K\x01\x87R(K\x03U\x01|NU\x01aq\x01\x85}h\x01cnumpy\ndtype\nU\x02O8K\x00K\x01"
    + b"\x87RK\x00\x86sK\x08K\x01K\x10tb.",
    "plain code given fields": GLOBAL
    + b"U\x02i8K\x00K\x01\x87R(K\x03U\x01|NU\x01aq\x01\x85}K\x08K\x01K\x10tb.",
    "dtype class as a dtype": b"\x80\x02cnumpy.core.multiarray\nscalar\n"
    b"cnumpy\ndtype\nU\x08aaaaaaaa\x86R.",
    "shared lists": shared(levels=11, parts=4),
    "deep lists": shared(levels=30, parts=1),
    "list of itself": itself(),
    "large integer": 10**30,
    "many memory entries": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "numpy.load": b"cnumpy\nload\n(S'x'\ntR.",
    "numpy.fromfile": b"cnumpy.core.multiarray\nfromfile\n(S'x'\ntR.",
    "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
    "persistent object": b"\x80\x02U\x01aQ.",
}


@pytest.mark.parametrize("case", REFUSED)
def test_everything_else_is_refused_by_name(read, case):
    if isinstance(REFUSED[case], bytes):
        list(pickletools.genops(REFUSED[case]))  # well formed: refused for what it asks
    words = r"could run code|is damaged" if case == "persistent object" else r"x\.pkl holds .*could"
    with pytest.raises(DataError, match=words):
        read(REFUSED[case])


def test_arrays_whose_bytes_do_not_fit_are_damaged(read):
    assert read(INTEGERS + STATE + b"U\x08aaaaaaaa\x86R.") == 0x6161616161616161
    with pytest.raises(DataError, match="is damaged"):
        read(INTEGERS + STATE + b"U\x10aaaaaaaaaaaaaaaa\x86R.")


def test_a_large_file_is_refused_before_it_is_read(read, monkeypatch):
    monkeypatch.setattr(unpickling, "MAX_BYTES", 100)
    assert read(b"\x80\x02U\x04four.") == "four"
    with pytest.raises(DataError, match="more than 100 bytes"):
        read(["x" * 200])


class Attack:
    """Calls a function when it is unpickled without care."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_wants_to_run_code_runs_nothing(read, tmp_path, protocol):
    trace = tmp_path / "trace"
    with pytest.raises(DataError, match="could run code"):
        read({"imlist": Attack(open, str(trace), "w")}, protocol)
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"no pickle", pickle.dumps([1] * 99)[:40], b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR."],
)
def test_a_damaged_pickle_is_named(read, content):
    with pytest.raises(DataError, match=r"x.pkl is damaged or no pickle"):
        read(content)
