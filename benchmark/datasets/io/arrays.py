"""Arrays that others saved: .npy, .npz, .safetensors, .pt and .csv, mapped where the format allows.

No pickle is opened, and the size that a header states is compared with that of the file.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array

UNPACKED = 2**30  # bytes of a compressed member, at most: it is unpacked in memory
LOCAL_HEADER = 30  # bytes of a zip file before a member's name


def read_arrays(path: Path, name: str) -> dict[str, Array]:
    """Return the arrays of a file by name; ``name`` is the name of an array without one.

    Raise DataError for a file that is missing, damaged or of another kind, or names code to run.
    """
    if path.suffix not in READERS:
        raise DataError(f"{path} is none of {', '.join(READERS)}")
    try:
        return READERS[path.suffix](path, name)
    except Exception as error:  # whatever the bytes provoke
        message = f"{path} cannot be read safely ({type(error).__name__}: {error})"
        raise DataError(f"{message:.600}; save plain arrays") from error


def _npy(path: Path, name: str) -> dict[str, Array]:
    return {name: np.load(path, mmap_mode="r", allow_pickle=False)}


def _npz(path: Path, name: str) -> dict[str, Array]:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as stream:
                arrays[member.filename.removesuffix(".npy")] = _member(path, member, stream)
    return arrays


def _member(
    path: Path,
    member: zipfile.ZipInfo,
    stream: Any,
) -> Array:
    packed = member.compress_type != zipfile.ZIP_STORED
    if packed and member.file_size > UNPACKED:
        raise ValueError(
            f"{member.filename} has {member.file_size:,} bytes, compressed; save it with "
            "numpy.savez, which can be mapped"
        )
    np.lib.format.read_magic(stream)
    shape, fortran, kind = np.lib.format.read_array_header_1_0(stream)
    begin = stream.tell()
    size = int(np.prod(shape, dtype=object)) * kind.itemsize
    if kind.hasobject or begin + size != member.file_size:
        raise ValueError(f"{member.filename} holds objects, or not what its header says")
    order: Any = "F" if fortran else "C"
    if packed or not size:
        return np.frombuffer(stream.read(), kind).reshape(shape, order=order)
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(LOCAL_HEADER)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:], "little")
    start = member.header_offset + LOCAL_HEADER + names + begin
    return np.memmap(
        path,
        kind,
        "r",
        start,
        shape,
        order,
    )


def _tensors(path: Path, name: str) -> dict[str, Array]:
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        content: Any = load_file(path)
    else:
        mapped = zipfile.is_zipfile(path)
        content = torch.load(
            path,
            map_location="cpu",
            weights_only=True,
            mmap=mapped,
        )
    if isinstance(content, torch.Tensor):
        content = {name: content}
    return {key: np.asarray(array) for key, array in content.items()}


def _csv(path: Path, name: str) -> dict[str, Array]:
    rows = np.loadtxt(
        path,
        str,
        None,
        ",",
        ndmin=2,
        quotechar='"',
        encoding="utf-8-sig",
    )
    names = rows[0].tolist()
    columns = rows[1:].T
    if len(names) == 1 and names[0].isdecimal():  # no heading
        names = [name]
        columns = rows.T
    return dict(zip(names, map(_column, columns), strict=True))


def _column(values: Array) -> Array:
    if np.isin(values, ["True", "False"]).all():
        return values == "True"
    return values.astype(int) if np.char.isdecimal(np.char.lstrip(values, "-")).all() else values


READERS: dict[str, Callable[[Path, str], dict[str, Array]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".safetensors": _tensors,
    ".pt": _tensors,
    ".pth": _tensors,
}
