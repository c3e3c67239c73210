"""Arrays that others saved: .npy, .npz, .safetensors, .pt and .csv, mapped where the format allows.

No pickle is opened, and the size that a header states is compared with that of the file. Messages
of numpy and torch are not passed on: some advise to load a file unsafely.
"""

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.files import check_regular
from benchmark.core.results import Array
from benchmark.datasets.io.columns import read_columns

UNPACKED = 2**30  # bytes of a compressed member, at most: it is unpacked in memory
LISTED = 2**20  # bytes of a file's list of arrays, at most
# Where a file says how many bytes its list of arrays has, and in how many bytes it says so.
OF_ZIP = (-10, 4)
OF_SAFETENSORS = (0, 8)


def read_arrays(path: Path, name: str) -> dict[str, Array]:
    """Return the arrays of a file by name; ``name`` is the name of an array without one.

    bfloat16 becomes float32. Raise DataError for a file that is missing, damaged or of another
    kind, or names code to run.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{path} is none of {', '.join(READERS)}")
    check_regular(path)
    try:
        with warnings.catch_warnings(action="ignore"):
            return READERS[suffix](path, name)
    except DataError:
        raise
    except Exception as error:  # whatever the bytes provoke
        reason = getattr(error, "strerror", None) or f"empty, damaged or no plain arrays; {SAVE}"
        raise DataError(f"{path} cannot be read safely: {reason}") from error


def _npy(path: Path, name: str) -> dict[str, Array]:
    return {name: np.load(path, mmap_mode="r", allow_pickle=False)}


def _npz(path: Path, name: str) -> dict[str, Array]:
    if zipfile.is_zipfile(path):
        _check_list(path, *OF_ZIP)
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as stream:
                start = archive.fp.tell() if archive.fp else 0
                name = member.filename.removesuffix(".npy")
                arrays[name] = _member(path, member, stream, start)
    return arrays


def _check_list(path: Path, place: int, length: int) -> None:
    """Raise DataError for a long list of arrays; its size stands at ``place``, or so far before
    the end."""
    with path.open("rb") as file:
        file.seek(place, 2 if place < 0 else 0)
        size = int.from_bytes(file.read(length), "little")
    if size > LISTED:
        raise DataError(f"{path} lists its arrays in {size:,} bytes (allowed: {LISTED:,})")


def _member(
    path: Path,
    member: zipfile.ZipInfo,
    stream: Any,
    start: int,
) -> Array:
    """Return the array of a member whose bytes ``start`` there; it is mapped if it can be."""
    packed = member.compress_type != zipfile.ZIP_STORED
    if packed and member.file_size > UNPACKED:
        raise DataError(
            f"{path}: {member.filename} has {member.file_size:,} bytes, compressed; save it with "
            "numpy.savez, which can be mapped"
        )
    read_header = np.lib.format.read_array_header_2_0
    if np.lib.format.read_magic(stream) == (1, 0):
        read_header = np.lib.format.read_array_header_1_0
    shape, fortran, kind = read_header(stream)
    begin = stream.tell()
    size = int(np.prod(shape, dtype=object)) * kind.itemsize
    if kind.hasobject or begin + size != member.file_size:
        raise DataError(f"{path}: {member.filename} holds objects, or not what its header says")
    order: Any = "F" if fortran else "C"
    if packed or not size:
        return np.frombuffer(stream.read(), kind).reshape(shape, order=order)
    return np.memmap(
        path,
        kind,
        "r",
        start + begin,
        shape,
        order,
    )


def _tensors(path: Path, name: str) -> dict[str, Array]:
    import torch

    if path.suffix.lower() == ".safetensors":
        from safetensors.torch import load_file

        _check_list(path, *OF_SAFETENSORS)
        content: Any = load_file(path)
    else:
        mapped = zipfile.is_zipfile(path)
        if mapped:
            _check_list(path, *OF_ZIP)
        content = torch.load(
            path,
            map_location="cpu",
            weights_only=True,
            mmap=mapped,
        )
    if isinstance(content, (list, tuple)) and all(map(torch.is_tensor, content)):
        content = dict(enumerate(content))
    elif isinstance(content, (list, tuple, torch.Tensor)):
        content = {name: content}
    return {str(key): _plain(value) for key, value in content.items()}


def _plain(value: Any) -> Array:
    """Return a tensor, or a list of values, as an array."""
    import torch

    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=object)
    value = value.detach()
    return np.asarray(value.float() if value.dtype == torch.bfloat16 else value)


SAVE = "save arrays by numpy.savez, tensors without arrays by torch.save, or a table in UTF-8"
READERS: dict[str, Callable[[Path, str], dict[str, Array]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": read_columns,
    ".tsv": read_columns,
    ".safetensors": _tensors,
    ".pt": _tensors,
    ".pth": _tensors,
}
