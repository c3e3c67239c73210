"""Writes the packed copy of a dataset's images that ``benchmark.datasets.io.packed`` reads.

Shards grow in ``root/.packing-<side>``, each followed by a list of what it holds. A run that was killed is
continued after its last listed shard; the folder gets its name when everything is there.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from benchmark.core.errors import DataError
from benchmark.core.files import write_json, write_text
from benchmark.datasets.base import fingerprint_of
from benchmark.datasets.io.packed import (
    COLUMNS,
    COMPLETE,
    INDEX,
    PackedImages,
    index_digest,
    packed_folder,
    shard_name,
)
from benchmark.datasets.prepare.encode import ENCODING_VERSION, Encoder
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.parallel import ordered_map

SHARD_BYTES = 256_000_000
PLAN = "plan.txt"
LISTED = 20


def is_packed(root: Path, side: int, paths: Sequence[str]) -> bool:
    """Says whether there is a complete packed copy with all these images."""
    try:
        return not PackedImages(root, side).missing(paths)
    except DataError:
        return False


def pack(
    root: Path, side: int, paths: Sequence[str], workers: int, *, compressed: bool = True
) -> Path:
    """Returns the folder with the images at ``root / path`` for each path, packed in that order.

    A complete copy of these images is kept as it is, compressed or not. Raises DataError listing the broken images;
    then no copy is made, and the shards before the first of them are kept for the next time.
    """
    folder = packed_folder(root, side)
    if is_packed(root, side, paths):
        return folder
    work = root / f".packing-{side}"
    try:
        done = _begin(
            work,
            fingerprint_of(str(ENCODING_VERSION), str(side), str(compressed), "\n".join(paths)),
        )
        rest = paths[sum(map(len, done)) :]
        with Meter(
            f"packing to {side} pixels", len(paths), "images", len(paths) - len(rest)
        ) as meter:
            broken = _write(
                work, rest, ordered_map(Encoder(root, side, compressed), rest, workers), done, meter
            )
        if broken:
            raise _broken(broken, len(paths), folder)
        _finish(work, folder, side, done)
    except OSError as error:
        raise DataError(
            f"cannot write {work}: {error.strerror}; free some space, then start the same command again: finished "
            "shards are kept"
        ) from error
    return folder


def _begin(work: Path, plan: str) -> list[pd.DataFrame]:
    """Returns the lists of the shards that are finished; removes those of another plan and half-written ones."""
    told = work / PLAN
    if not told.is_file() or told.read_text(encoding="utf-8") != plan:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        write_text(told, plan)
    done = []
    while (path := _list_path(work, len(done))).is_file():
        done.append(pd.read_csv(path, dtype={"path": str}))
    return done


def _list_path(work: Path, number: int) -> Path:
    return (work / shard_name(number)).with_suffix(".csv")


def _write(
    work: Path,
    paths: Sequence[str],
    contents: Iterator[bytes | str],
    done: list[pd.DataFrame],
    meter: Meter,
) -> list[str]:
    """Writes the shards of these images and adds their lists to ``done``; returns what is wrong with the broken ones.

    From the first broken image on nothing is written, and the rest is read to name every other.
    """
    broken: list[str] = []
    shard = _Shard(work, len(done))
    for path, content in zip(paths, contents, strict=True):
        meter.add(1)
        if isinstance(content, str):
            broken.append(content)
        elif not broken:
            shard.add(path, content)
            if shard.size >= SHARD_BYTES:
                done.append(shard.finish())
                shard = _Shard(work, len(done))
    if not broken and shard.rows:
        done.append(shard.finish())
    shard.stream.close()
    return broken


class _Shard:
    """A shard being written; whoever gives it up before it is finished closes its ``stream``."""

    def __init__(self, work: Path, number: int):
        self.work, self.number = work, number
        self.stream = io.BufferedWriter(io.FileIO(work / shard_name(number), "wb"))
        self.size = 0
        self.rows: list[tuple[str, int, int, int]] = []

    def add(self, path: str, content: bytes) -> None:
        """Appends one image."""
        self.stream.write(content)
        self.rows.append((path, self.number, self.size, len(content)))
        self.size += len(content)

    def finish(self) -> pd.DataFrame:
        """Writes the list that makes the shard count as finished, and returns it."""
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        table = pd.DataFrame(self.rows, columns=list(COLUMNS))
        write_text(_list_path(self.work, self.number), table.to_csv(index=False))
        return table


def _finish(work: Path, folder: Path, side: int, lists: list[pd.DataFrame]) -> None:
    """Writes the index and gives the folder its name; an older copy goes first, its mark before its rest."""
    table = pd.concat(lists)
    write_text(work / INDEX, table.to_csv(index=False))
    for number in range(len(lists)):
        _list_path(work, number).unlink()
    (work / shard_name(len(lists))).unlink(missing_ok=True)
    (work / PLAN).unlink()
    write_json(work / COMPLETE, {"images": len(table), "side": side, "digest": index_digest(work)})
    (folder / COMPLETE).unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    os.rename(work, folder)


def _broken(broken: list[str], total: int, folder: Path) -> DataError:
    more = [f"and {len(broken) - LISTED:,} more"] if len(broken) > LISTED else []
    head = f"{len(broken):,} of {total:,} images are broken, so {folder} was not written"
    return DataError("\n  ".join([head, *broken[:LISTED], *more]))
