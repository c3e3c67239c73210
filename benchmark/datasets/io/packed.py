"""Images resized once and packed into a few large files, for file systems slow with small ones.

``root/packed-<side>/`` holds, for images whose shorter side is at most ``side`` pixels:

index.csv         columns path, shard, offset, size: bytes [offset, offset + size) of shard number
                  ``shard`` are one JPEG, PNG, PPM or PGM file, the image that the dataset names
                  ``path``
shard-00000.bin   such files one after the other, in shards numbered from 0
complete.json     written last: {"images": rows of the index, "side": side, "largest": longest
                  shorter side of the original images, "digest": sha256 of index.csv}

A folder without complete.json was left half-written and is never read. Shards grow in
``root/.packing-<side>``, whose index.csv lists the images of the complete ones: a run that was
killed continues behind them. The folder gets its name when everything is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.core.files import write_json, write_text
from benchmark.core.words import one_a_line
from benchmark.datasets.base import Findings, fingerprint_of
from benchmark.datasets.io.images import (
    UPRIGHT,
    Divisor,
    open_image,
    opened,
    orientation,
    upright,
)

COLUMNS = ("path", "shard", "offset", "size")
INDEX = "index.csv"
COMPLETE = "complete.json"
PLAN = "plan.txt"
SHARD_BYTES = 256_000_000
ENCODING_VERSION = 1  # raise when the bytes change
QUALITY = 95
LOSSY = ("JPEG", "MPO", "WEBP")
BLOCK = 2000  # items whose results may wait in memory


def shard_name(number: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{number:05d}.bin"


def _read_index(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"path": object}, keep_default_na=False)


class PackedImages:
    """The index of a packed folder that is complete."""

    def __init__(self, root: Path, side: int):
        """Raise DataError when the folder is absent or half-written."""
        self.folder = root / f"packed-{side}"
        self.side = side
        try:
            content = json.loads((self.folder / COMPLETE).read_text())
            self.digest = content["digest"]
            self.largest = content["largest"]
        except (OSError, ValueError, KeyError) as error:  # half-written, or of an older version
            raise DataError(
                f"no complete packed images in {self.folder}; write it again with 'data prepare', "
                f"or leave out packed: {side}"
            ) from error
        self._index = _read_index(self.folder / INDEX).set_index("path")

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Return the paths that were not packed."""
        packed = set(self._index.index)
        return [path for path in paths if path not in packed]

    def check_whole(self, findings: Findings) -> None:
        """Add a problem unless all images kept their size."""
        if self.largest > self.side:
            findings.add(
                "shrunk_image",
                f"the longest shorter side of the images is {self.largest}, so crops may be others "
                f"than of the files; remove {self.folder} and pack to a larger side",
            )

    def opener(self, paths: Sequence[str]) -> PackedOpener:
        """Return the opener of these images, in this order."""
        rows = self._index.loc[list(paths)]
        columns = (rows[name].to_numpy(np.int64) for name in COLUMNS[1:])
        return PackedOpener(self.folder, list(paths), *columns)


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

    def __call__(self, index: int, divisor: Divisor | None = None) -> Image.Image:
        """Return image number i; see ``open_pixels`` for the divisor."""
        shard = int(self.shards[index])
        path = self.folder / shard_name(shard)
        if shard not in self._files:
            self._files[shard] = io.FileIO(path)
        # pread has no file position, so threads and forked workers may share the file
        content = os.pread(
            self._files[shard].fileno(), int(self.sizes[index]), int(self.offsets[index])
        )
        return open_image(io.BytesIO(content), f"{self.paths[index]} in {path}", divisor)

    reduced = __call__


def pack(
    root: Path, side: int, paths: Sequence[str], workers: int, *, compressed: bool = True
) -> Path:
    """Return the folder with the images at ``root / path``, packed in the order of ``paths``.

    A complete copy of these images is left as it is, compressed or not. Raise DataError listing
    the broken images; the shards before the first of them stay for the next run.
    """
    from tqdm import tqdm

    folder = root / f"packed-{side}"
    work = root / f".packing-{side}"
    with contextlib.suppress(DataError):  # no copy exists
        if not PackedImages(root, side).missing(paths):
            return folder
    plan = fingerprint_of(str(ENCODING_VERSION), str(side), str(compressed), "\n".join(paths))
    if not (work / PLAN).exists() or (work / PLAN).read_text() != plan:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_text(work / PLAN, plan)
    done = [_read_index(work / INDEX)] if (work / INDEX).exists() else []
    rest = paths[sum(map(len, done)) :]
    encoded = ordered_map(lambda path: encode(root / path, side, compressed), rest, workers)
    bar = tqdm(encoded, f"packing to {side} pixels", len(rest), leave=False, disable=None)
    contents = zip(rest, bar, strict=True)
    broken: list[str] = []
    number = int(done[0]["shard"].max()) + 1 if done else 0
    while rows := _write_shard(work, number, contents, broken):
        done.append(pd.DataFrame(rows, columns=list(COLUMNS)))
        write_text(work / INDEX, pd.concat(done).to_csv(index=False))
        number += 1
    if broken:
        raise DataError(
            f"{len(broken):,} of {len(paths):,} images are broken, so {folder} was not written"
            + one_a_line(broken)
        )
    (work / shard_name(number)).unlink()  # an empty one
    (work / PLAN).unlink()
    digest = hashlib.sha256((work / INDEX).read_bytes()).hexdigest()
    largest = max(ordered_map(lambda path: _shorter_side(root / path), paths, workers), default=0)
    content = {"images": len(paths), "side": side, "largest": largest, "digest": digest}
    write_json(work / COMPLETE, content)
    (folder / COMPLETE).unlink(missing_ok=True)  # an older copy is no longer complete
    shutil.rmtree(folder, ignore_errors=True)
    work.rename(folder)
    return folder


def _shorter_side(file: Path) -> int:
    with Image.open(file) as image:
        return min(image.size)


def _write_shard(
    work: Path, number: int, contents: Iterator[tuple[str, bytes | str]], broken: list[str]
) -> list[tuple[str, int, int, int]]:
    """Write (path, content) until the shard is full; return its rows of the index.

    The errors of images go to ``broken``; behind the first nothing is written, but all are read.
    """
    rows: list[tuple[str, int, int, int]] = []
    with (work / shard_name(number)).open("wb") as stream:
        for name, content in contents:
            if isinstance(content, str):
                broken.append(content)
            elif not broken:
                rows.append((name, number, stream.tell(), stream.write(content)))
                if stream.tell() >= SHARD_BYTES:
                    break
        stream.flush()
        os.fsync(stream.fileno())
    return [] if broken else rows


def encode(file: Path, side: int, compressed: bool) -> bytes | str:
    """Return the bytes that an image is packed as, or its error as text.

    Images are shrunk to ``side`` pixels on the shorter side, never enlarged: a smaller upright JPEG
    or PNG keeps its very bytes. Shrinking is bilinear, as in evaluation, which therefore sees the
    same pixels, to one grey level, when it asks for the same side. Lossy formats become JPEG
    (quality 95, full colour resolution), all others lossless PNG. Without ``compressed`` every
    image is stored as plain pixels (PPM or PGM): several times the bytes, and nothing to decode.
    """
    try:
        content = file.read_bytes()
        with opened(io.BytesIO(content), str(file)) as image:
            kind = image.format
            as_stored = orientation(image) == UPRIGHT and image.mode in ("L", "RGB")
            image = upright(image)
    except (OSError, DataError) as error:
        return str(error)
    if min(image.size) > side:
        scale = side / min(image.size)
        width, height = (max(side, round(length * scale)) for length in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    elif compressed and as_stored and kind in ("JPEG", "PNG"):
        return content
    stream = io.BytesIO()
    if not compressed:
        image.save(stream, "PPM")
    elif kind in LOSSY:
        image.save(stream, "JPEG", quality=QUALITY, subsampling=0)
    else:
        image.save(stream, "PNG")
    return stream.getvalue()


def ordered_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Any]:
    """Yield ``function(item)`` for each item in order, from threads: Pillow lets others run."""
    with ThreadPoolExecutor(workers) as pool:
        for at in range(0, len(items), BLOCK):
            yield from pool.map(function, items[at : at + BLOCK])
