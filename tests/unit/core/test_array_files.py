"""Arrays of a file from outside: whatever is in it, a ValueError says so."""

import struct
import zipfile

import numpy as np
import pytest

from benchmark.core.array_file import read_arrays

KINDS = {"a": ("f", 1)}


@pytest.mark.parametrize(
    "header",
    [b"(((", b'"""', b"{", b"\n  x\n y", b"{[]:1}", b"-" * 9000 + b"1", b""],
)
def test_a_header_that_python_cannot_read_is_refused(header, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
    with pytest.raises(ValueError):
        read_arrays(tmp_path / "a.npz", KINDS)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_can_take_any_memory_is_refused(method, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.write(tmp_path / "a.npy", "a.npy")
    with pytest.raises(ValueError, match="compression"):
        read_arrays(tmp_path / "a.npz", KINDS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(save, tmp_path):
    save(tmp_path / "a.npz", a=np.arange(3.0))
    assert read_arrays(tmp_path / "a.npz", KINDS)["a"].tolist() == [0, 1, 2]
