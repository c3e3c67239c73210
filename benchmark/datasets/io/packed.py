"""Images resized once and packed into a few large files, for file systems slow with small ones.

``root/packed-<side>/`` holds, for images whose shorter side is at most ``side`` pixels:

index.csv         columns path, shard, offset, size: bytes [offset, offset + size) of shard number
                  ``shard`` are one JPEG, PNG, PPM or PGM file, the image that the dataset names
                  ``path``
shard-00000.bin   such files one after the other, in shards numbered from 0
complete.json     written last: {"images": rows of the index, "side": side, "digest": sha256 of
                  index.csv}

A folder without complete.json was left half-written and is never read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets.io.images import Divisor, open_image

COLUMNS = ("path", "shard", "offset", "size")
INDEX, COMPLETE = "index.csv", "complete.json"


def packed_folder(root: Path, side: int) -> Path:
    """Return the folder of the packed images of that side."""
    return root / f"packed-{side}"


def shard_name(number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{number:05d}.bin"


def index_digest(folder: Path) -> str:
    """Return the digest that complete.json must give: of the bytes of index.csv."""
    return hashlib.sha256((folder / INDEX).read_bytes()).hexdigest()


def read_index(path: Path) -> pd.DataFrame:
    """Return the columns of a list of packed images."""
    return pd.read_csv(path, dtype={"path": object}, keep_default_na=False)[list(COLUMNS)]


class PackedImages:
    """The index of a packed folder that is complete, of this side, with no shard too short."""

    def __init__(self, root: Path, side: int):
        """Raise DataError when the folder is absent, half-written or cut."""
        self.folder = packed_folder(root, side)
        advice = f"write it again with 'data prepare', or leave out packed: {side}"
        if not (self.folder / COMPLETE).is_file():
            raise DataError(f"no complete packed images in {self.folder}; {advice}")
        record = json.loads((self.folder / COMPLETE).read_text())
        self.digest = index_digest(self.folder)
        if (record["digest"], record["side"]) != (self.digest, side):
            raise DataError(
                f"{self.folder / COMPLETE} does not describe {self.folder / INDEX} and side "
                f"{side}; {advice}"
            )
        self._index = read_index(self.folder / INDEX).set_index("path")
        ends = (self._index["offset"] + self._index["size"]).groupby(self._index["shard"]).max()
        sizes = {number: _size(self.folder / shard_name(number)) for number in ends.index}
        if short := [shard_name(number) for number in ends.index if sizes[number] < ends[number]]:
            raise DataError(f"{self.folder} was cut: {', '.join(short)} lack bytes; {advice}")

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that were not packed."""
        packed = set(self._index.index)
        return [path for path in paths if path not in packed]

    def opener(self, paths: Sequence[str]) -> PackedOpener:
        """Return the opener of these images, in this order."""
        rows = self._index.loc[list(paths)]
        columns = (rows[name].to_numpy(np.int64) for name in COLUMNS[1:])
        return PackedOpener(self.folder, list(paths), *columns)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@dataclass(eq=False)
class PackedOpener:
    """Opens image number i out of its shard; worker processes receive it without open files."""

    folder: Path
    paths: list[str]
    shards: np.ndarray
    offsets: np.ndarray
    sizes: np.ndarray
    _files: dict[int, io.FileIO] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": {}}

    def __call__(self, index: int) -> Image.Image:
        return self._open(index, None)

    def reduced(self, index: int, divisor: Divisor) -> Image.Image:
        """Return image number i; see ``open_image`` for the divisor."""
        return self._open(index, divisor)

    def _open(self, index: int, divisor: Divisor | None) -> Image.Image:
        shard = int(self.shards[index])
        path = self.folder / shard_name(shard)
        if shard not in self._files:
            self._files[shard] = io.FileIO(path)
        # pread has no file position, so threads and forked workers may share the file
        content = os.pread(
            self._files[shard].fileno(), int(self.sizes[index]), int(self.offsets[index])
        )
        return open_image(io.BytesIO(content), f"{self.paths[index]} in {path}", divisor)
