"""Files of ``torch.save``, from outside: tensors and plain containers, read without code."""

from pathlib import Path
from typing import Any

import torch

from benchmark.core.paths import open_regular
from benchmark.core.pickles import check_pickles
from benchmark.core.zip_file import open_zip

ZIP = b"PK\x03\x04"  # by which torch tells its two formats apart
OF_OLD_FORMAT = 5  # pickles: magic number, version, machine, content, names of storages


def read_tensors(path: Path) -> Any:
    """Return the content of a file, its tensors on the CPU.

    Raise OSError, RefusedError, or whatever the bytes provoke in torch.
    """
    with open_regular(path) as stream:
        start = stream.read(len(ZIP))
        stream.seek(0)
        if start == ZIP:
            with open_zip(stream) as archive:
                for entry in archive.infolist():
                    if entry.filename.endswith(".pkl"):
                        with archive.open(entry) as content:
                            check_pickles(content)
        else:
            check_pickles(stream, OF_OLD_FORMAT)
    return torch.load(path, map_location="cpu", weights_only=True)
