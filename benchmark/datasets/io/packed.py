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
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.csv_file import read_csv
from benchmark.core.errors import DataError
from benchmark.core.paths import MAX_RECORD, os_errors, read_regular
from benchmark.core.plain import parse_json
from benchmark.datasets.io.images import MAX_IMAGE, Divisor, open_image

COLUMNS = ("path", "shard", "offset", "size")
MAX_BYTES = 1 << 50  # of a shard
INDEX, COMPLETE = "index.csv", "complete.json"


def packed_folder(root: Path, side: int) -> Path:
    """Return the folder of the packed images of that side."""
    return root / f"packed-{side}"


def shard_name(number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{number:05d}.bin"


def index_digest(folder: Path) -> str:
    """Return the digest that complete.json must give: of the bytes of index.csv."""
    return hashlib.sha256(read_regular(folder / INDEX)).hexdigest()


class PackedImages:
    """The index of a packed folder, verified: complete, of this side, no shard too short."""

    def __init__(self, root: Path, side: int):
        """Raise DataError when the folder is absent, half-written or damaged."""
        self.folder = packed_folder(root, side)
        self.digest = self._check_digest(side)
        self._index = self._read_index()
        self._check_shards()

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return those of the paths that were not packed."""
        packed = set(self._index.index)
        return [path for path in paths if path not in packed]

    def opener(self, paths: Sequence[str]) -> PackedOpener:
        """Return the opener of these images, in this order."""
        rows = self._index.loc[list(paths)]
        columns = (rows[name].to_numpy(np.int64) for name in COLUMNS[1:])
        return PackedOpener(self.folder, list(paths), *columns)

    def _check_digest(self, side: int) -> str:
        path = self.folder / COMPLETE
        advice = f"write it again with 'data prepare', or leave out packed: {side}"
        if not self.folder.is_dir():
            raise DataError(f"no packed images in {self.folder}; {advice}")
        try:
            record = parse_json(read_regular(path, MAX_RECORD))
            digest, stated = index_digest(self.folder), (record["digest"], record["side"])
        except FileNotFoundError as error:
            raise DataError(
                f"{self.folder} is incomplete: it has no {Path(error.filename).name}; {advice}"
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"cannot read the packed images' {path}: {error}; {advice}") from error
        if stated != (digest, side):
            raise DataError(
                f"{path} does not describe {self.folder / INDEX} and side {side}; {advice}"
            )
        return digest

    def _read_index(self) -> pd.DataFrame:
        path = self.folder / INDEX
        numbers = COLUMNS[1:]
        try:
            table = read_csv(path, COLUMNS, dict.fromkeys(numbers, "int64"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"cannot read {path}: {error}; write the packed images again"
            ) from error
        if table["path"].duplicated().any() or not all(
            table[name].between(0, MAX_BYTES).all() for name in numbers
        ):
            raise DataError(
                f"{path} must have each path once, and numbers from 0 to {MAX_BYTES:,}; write it "
                "again"
            )
        if (table["size"] > MAX_IMAGE).any():
            raise DataError(f"{path} has an image of more than {MAX_IMAGE:,} bytes; write it again")
        return table.set_index("path")

    def _check_shards(self) -> None:
        shards = self._index["shard"].to_numpy()
        ends = (self._index["offset"] + self._index["size"]).to_numpy()
        short = []
        for number in np.unique(shards):
            least = ends[shards == number].max()
            path = self.folder / shard_name(number)
            size = path.stat().st_size if path.is_file() else 0
            if size < least:
                short.append(f"{path.name} has {size:,} of {least:,} bytes")
        if short:
            raise DataError(
                f"packed images in {self.folder} are damaged: {'; '.join(short)}; write them again"
            )


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
        with os_errors(f"cannot read {path}", "write the packed images again"):
            if shard not in self._files:
                self._files[shard] = io.FileIO(path)
            # pread has no file position, so threads and forked workers may share the file
            content = os.pread(
                self._files[shard].fileno(), int(self.sizes[index]), int(self.offsets[index])
            )
        return open_image(io.BytesIO(content), f"{self.paths[index]} in {path}", divisor)
