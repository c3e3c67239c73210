"""Arrays in a .npz from outside: every file that is none, or of other arrays, is a ValueError.

numpy trusts the shapes in a file, so that a small one can ask for all memory, and passes on the
errors of zip and zlib.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmark.core.paths import open_regular
from benchmark.core.zip_file import BOUNDED, open_zip

MAX_BYTES = 4 << 30  # of all arrays of a file
# name -> (kinds of the dtype, such as "iu" for whole numbers, and the number of axes)
Shapes = Mapping[str, tuple[str, int]]


def read_arrays(path: Path, shapes: Shapes) -> dict[str, np.ndarray]:
    """Return the named arrays of a .npz file, each of one of its kinds and with so many axes.

    Other arrays of the file are not read. Raise ValueError for everything else, OSError when the
    file cannot be opened.
    """
    try:
        with open_regular(path) as stream, open_zip(stream) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            if any(info.compress_type not in BOUNDED for info in archive.infolist()):
                raise ValueError("its compression is none of numpy's")
            absent = [name for name in shapes if f"{name}.npy" not in sizes]
            if absent:
                raise ValueError(f"it lacks {', '.join(absent)}")
            if sum(sizes[f"{name}.npy"] for name in shapes) > MAX_BYTES:
                raise ValueError(f"it holds more than {MAX_BYTES >> 30} GiB")
            arrays = {name: _read(archive, name, sizes[f"{name}.npy"]) for name in shapes}
    except OSError:
        raise
    except Exception as error:  # a damaged file makes its reader fail in any way
        raise ValueError(str(error) or type(error).__name__) from error
    for name, (kinds, axes) in shapes.items():
        array = arrays[name]
        if array.dtype.kind not in kinds or array.ndim != axes:
            raise ValueError(f"{name} is of type {array.dtype} with {array.ndim} axes")
    return arrays


def _read(archive: zipfile.ZipFile, name: str, size: int) -> np.ndarray:
    """Return one array, whose header must not announce more bytes than there are."""
    form = np.lib.format
    with archive.open(f"{name}.npy") as stream:
        version = form.read_magic(stream)
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject or dtype.fields or dtype.subdtype:
            raise ValueError(f"{name} is of type {dtype}")
        values = 1
        for length in shape:
            values *= length
        if values < 0 or values * dtype.itemsize > size or len(shape) > 8:
            raise ValueError(f"{name} has the shape {shape}, which does not fit its bytes")
    with archive.open(f"{name}.npy") as stream:
        array: np.ndarray = form.read_array(stream, allow_pickle=False)
    return array
