"""Writes the packed copy of a dataset's images that ``benchmark.datasets.io.packed`` reads.

Shards grow in ``root/.packing-<side>``; a list of its images is written when a shard is complete.
A run that was killed continues after its last complete shard; the folder gets its name when
everything is there.
"""

import contextlib
import io
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image
from tqdm import tqdm

from benchmark.core.errors import DataError
from benchmark.core.files import write_json, write_text
from benchmark.core.interrupts import held_back_from_workers, leave_interrupts_to_parent
from benchmark.core.paths import os_errors
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
CHUNK = 32  # items handed to a worker at a time
MIN_ITEMS = 500  # per worker; fewer take less time than starting it


def pack(
    root: Path, side: int, paths: Sequence[str], workers: int, *, compressed: bool = True
) -> Path:
    """Return the folder with the images at ``root / path``, packed in the order of ``paths``.

    A complete copy of these images is left as it is, compressed or not. Raise DataError listing
    the broken images; the shards before the first of them stay for the next run.
    """
    folder = packed_folder(root, side)
    with contextlib.suppress(DataError):  # there is none, or it is cut
        if not PackedImages(root, side).missing(paths):
            return folder
    work = root / f".packing-{side}"
    plan = fingerprint_of(str(ENCODING_VERSION), str(side), str(compressed), "\n".join(paths))
    broken: list[str] = []
    with os_errors(f"cannot write {work}", "free some space and start the same command again"):
        shards = _complete_shards(work, plan, paths)
        rest = paths[sum(map(len, shards)) :]
        encoded = ordered_map(Encoder(root, side, compressed), rest, workers)
        bar = tqdm(encoded, f"packing to {side} pixels", len(rest), leave=False, disable=None)
        contents = zip(rest, bar, strict=True)
        while (rows := _write_shard(work, len(shards), contents, broken)) is not None:
            shards.append(rows)
        if broken:
            raise DataError(
                f"{len(broken):,} of {len(paths):,} images are broken, so {folder} was not written"
                + listed(broken)
            )
        _finish(work, folder, side, pd.concat(shards))
    return folder


def _complete_shards(work: Path, plan: str, paths: Sequence[str]) -> list[pd.DataFrame]:
    """Return the lists of the complete shards of a plan; delete what another plan left."""
    recorded = work / PLAN
    if not recorded.exists() or recorded.read_text() != plan:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_text(recorded, plan)
    shards: list[pd.DataFrame] = []
    while (rows := _complete_shard(work, len(shards), paths)) is not None:
        shards.append(rows)
        paths = paths[len(rows) :]
    return shards


def _complete_shard(work: Path, number: int, paths: Sequence[str]) -> pd.DataFrame | None:
    """Return the list of a complete shard that begins with the first of ``paths``; else None."""
    try:
        rows = read_index(_list_path(work, number))
        stored = os.stat(work / shard_name(number)).st_size
        ends = rows["size"].cumsum()
        fits = (
            rows["path"].tolist() == list(paths[: len(rows)])
            and (rows["shard"] == number).all()
            and (rows["offset"] == ends - rows["size"]).all()
            and ends.iloc[-1] == stored
        )
    except (OSError, LookupError, TypeError, ValueError):
        return None
    return rows if fits else None


def _list_path(work: Path, number: int) -> Path:
    return (work / shard_name(number)).with_suffix(".csv")


def _write_shard(
    work: Path, number: int, contents: Iterator[tuple[str, bytes | str]], broken: list[str]
) -> pd.DataFrame | None:
    """Write (path, content) until the shard is full; return its list, None without any.

    The errors of images go to ``broken``; behind the first nothing is written, but all are read.
    """
    path = work / shard_name(number)
    for old in (_list_path(work, number), path):  # its list goes first: it vouches for the shard
        old.unlink(missing_ok=True)
    rows: list[tuple[str, int, int, int]] = []
    size = 0
    with open(path, "xb") as stream:
        for name, content in contents:
            if isinstance(content, str):
                broken.append(content)
            elif not broken:
                rows.append((name, number, size, len(content)))
                size += stream.write(content)
                if size >= SHARD_BYTES:
                    break
        stream.flush()
        os.fsync(stream.fileno())
    if broken or not rows:
        return None
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    write_text(_list_path(work, number), table.to_csv(index=False))
    return table


def _finish(work: Path, folder: Path, side: int, index: pd.DataFrame) -> None:
    """Write the index and give the folder its name; of an older copy, the mark goes first."""
    write_text(work / INDEX, index.to_csv(index=False))
    shards = {shard_name(number) for number in index["shard"].unique()}
    for path in work.iterdir():
        if path.name not in {INDEX, *shards}:  # lists, the plan, an empty last shard
            path.unlink()
    write_json(work / COMPLETE, {"images": len(index), "side": side, "digest": index_digest(work)})
    (folder / COMPLETE).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    os.rename(work, folder)


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
    """Yield ``function(item)`` for each item in order; few items or one worker stay here."""
    workers = min(workers, -(-len(items) // MIN_ITEMS))
    if workers <= 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")  # forking a process that has threads may hang
    with ProcessPoolExecutor(workers, context, _start_worker, (function,)) as pool:
        for at in range(0, len(items), BLOCK):
            with held_back_from_workers():
                results = pool.map(_apply, items[at : at + BLOCK], chunksize=CHUNK)
            yield from results


_function: Callable[[Any], Any]  # of a worker: sent once instead of with every chunk


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    leave_interrupts_to_parent()


def _apply(item: Any) -> Any:
    return _function(item)
