"""Writes the packed copy of a dataset's images that ``benchmark.datasets.io.packed`` reads.

Shards grow in ``root/.packing-<side>``; a list of its images is written when a shard is complete.
A run that was killed continues after its last complete shard; the folder gets its name when
everything is there.
"""

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image
from tqdm import tqdm

from benchmark.core.errors import DataError
from benchmark.core.files import write_json, write_text
from benchmark.datasets.base import fingerprint_of
from benchmark.datasets.io.findings import listed
from benchmark.datasets.io.images import image_format, open_image
from benchmark.datasets.io.packed import (
    COLUMNS,
    COMPLETE,
    INDEX,
    PackedImages,
    index_digest,
    packed_folder,
    read_index,
    shard_name,
)

SHARD_BYTES = 256_000_000
PLAN = "plan.txt"
ENCODING_VERSION = 1  # raise when the bytes change
QUALITY = 95
LOSSY = ("JPEG", "MPO", "WEBP")
BLOCK = 2000  # items whose results may wait in memory


def pack(
    root: Path, side: int, paths: Sequence[str], workers: int, *, compressed: bool = True
) -> Path:
    """Return the folder with the images at ``root / path``, packed in the order of ``paths``.

    A complete copy of these images is left as it is, compressed or not. Raise DataError listing
    the broken images; the shards before the first of them stay for the next run.
    """
    folder, work = packed_folder(root, side), root / f".packing-{side}"
    with contextlib.suppress(DataError):  # there is none, or it is cut
        if not PackedImages(root, side).missing(paths):
            return folder
    plan = fingerprint_of(str(ENCODING_VERSION), str(side), str(compressed), "\n".join(paths))
    if not (work / PLAN).exists() or (work / PLAN).read_text() != plan:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_text(work / PLAN, plan)
    lists = _complete_lists(work, paths)
    rest = paths[sum(map(len, lists)) :]
    encoded = ordered_map(Encoder(root, side, compressed), rest, workers)
    bar = tqdm(encoded, f"packing to {side} pixels", len(rest), leave=False, disable=None)
    contents = zip(rest, bar, strict=True)
    broken: list[str] = []
    while (rows := _write_shard(work, len(lists), contents, broken)) is not None:
        lists.append(rows)
    if broken:
        raise DataError(
            f"{len(broken):,} of {len(paths):,} images are broken, so {folder} was not written"
            + listed(broken)
        )
    write_text(work / INDEX, pd.concat(lists).to_csv(index=False))
    for path in work.iterdir():
        if path.name not in {INDEX, *map(shard_name, range(len(lists)))}:
            path.unlink()  # lists, the plan, an empty last shard
    write_json(work / COMPLETE, {"images": len(paths), "side": side, "digest": index_digest(work)})
    (folder / COMPLETE).unlink(missing_ok=True)  # of an older copy, the mark goes first
    shutil.rmtree(folder, ignore_errors=True)
    work.rename(folder)
    return folder


def _complete_lists(work: Path, paths: Sequence[str]) -> list[pd.DataFrame]:
    """Return the lists of the complete shards; one after the other, they begin like ``paths``."""
    lists: list[pd.DataFrame] = []
    with contextlib.suppress(OSError, LookupError, TypeError, ValueError):  # a list does not fit
        while True:
            shard = work / shard_name(len(lists))
            rows = read_index(shard.with_suffix(".csv"))
            ends = rows["size"].cumsum()
            if (
                rows["path"].tolist() != list(paths[: len(rows)])
                or (rows["shard"] != len(lists)).any()
                or (rows["offset"] != ends - rows["size"]).any()
                or ends.iloc[-1] != shard.stat().st_size
            ):
                break
            lists.append(rows)
            paths = paths[len(rows) :]
    return lists


def _write_shard(
    work: Path, number: int, contents: Iterator[tuple[str, bytes | str]], broken: list[str]
) -> pd.DataFrame | None:
    """Write (path, content) until the shard is full; return its list, None without any.

    The errors of images go to ``broken``; behind the first nothing is written, but all are read.
    """
    path = work / shard_name(number)
    list_path = path.with_suffix(".csv")
    for old in (list_path, path):  # its list goes first: it vouches for the shard
        old.unlink(missing_ok=True)
    rows: list[tuple[str, int, int, int]] = []
    with path.open("xb") as stream:
        for name, content in contents:
            if isinstance(content, str):
                broken.append(content)
            elif not broken:
                rows.append((name, number, stream.tell(), stream.write(content)))
                if stream.tell() >= SHARD_BYTES:
                    break
        stream.flush()
        os.fsync(stream.fileno())
    if broken or not rows:
        return None
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    write_text(list_path, table.to_csv(index=False))
    return table


@dataclass(frozen=True)
class Encoder:
    """Returns the bytes of the image at ``root / path``, or its error as text.

    Images are shrunk to ``side`` pixels on the shorter side, never enlarged: a smaller upright JPEG
    or PNG keeps its very bytes. Shrinking is bilinear, as in evaluation, which therefore sees the
    same pixels, to one grey level, when it asks for the same side. Lossy formats become JPEG
    (quality 95, full colour resolution), all others lossless PNG. Without ``compressed`` every
    image is stored as plain pixels (PPM or PGM): several times the bytes, and nothing to decode.
    """

    root: Path
    side: int
    compressed: bool = True

    def __call__(self, path: str) -> bytes | str:
        file = self.root / path
        try:
            content = file.read_bytes()
            image = open_image(io.BytesIO(content), str(file))
            kind, as_stored = image_format(io.BytesIO(content), str(file))
        except (OSError, DataError) as error:
            return str(error)
        if min(image.size) > self.side:
            scale = self.side / min(image.size)
            width, height = (max(self.side, round(length * scale)) for length in image.size)
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        elif self.compressed and as_stored and kind in ("JPEG", "PNG"):
            return content
        stream = io.BytesIO()
        if not self.compressed:
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
