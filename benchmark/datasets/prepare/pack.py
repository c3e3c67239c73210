"""Writes the packed copy of a dataset's images that ``benchmark.datasets.io.packed`` reads.

Shards grow in ``root/.packing-<side>``; a list of its images is written when a shard is complete.
A run that was killed continues after its last complete shard; the folder gets its name when
everything is there.
"""

import contextlib
import io
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image

from benchmark.core.csv_file import read_csv
from benchmark.core.errors import DataError
from benchmark.core.files import remove_folder, write_json, write_text
from benchmark.core.paths import MAX_RECORD, os_errors, path_below, read_regular
from benchmark.datasets.base import fingerprint_of
from benchmark.datasets.io.findings import listed
from benchmark.datasets.io.images import MAX_IMAGE, image_format, open_image
from benchmark.datasets.io.packed import (
    COLUMNS,
    COMPLETE,
    INDEX,
    PackedImages,
    index_digest,
    packed_folder,
    shard_name,
)
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.parallel import ordered_map
from benchmark.datasets.prepare.staging import PACKING, check_places

SHARD_BYTES = 256_000_000
PLAN = "plan.txt"


def pack(
    root: Path, side: int, paths: Sequence[str], workers: int, *, compressed: bool = True
) -> Path:
    """Return the folder with the images at ``root / path``, packed in the order of ``paths``.

    A complete copy of these images is left as it is, compressed or not. Raise DataError listing
    the broken images; the shards before the first of them stay for the next run.
    """
    folder = packed_folder(root, side)
    with contextlib.suppress(DataError):  # there is none, or it is damaged
        if not PackedImages(root, side).missing(paths):
            return folder
    work = root / f"{PACKING}{side}"
    plan = plan_of(side, paths, compressed=compressed)
    advice = "free some space and start the same command again: complete shards are kept"
    with os_errors(f"cannot write {work}", advice):
        check_places([folder, work], work.iterdir() if work.is_dir() else ())
        shards = _complete_shards(work, plan, paths)
        rest = paths[sum(map(len, shards)) :]
        contents = ordered_map(Encoder(root, side, compressed), rest, workers)
        with Meter(f"packing to {side} pixels", len(paths), "images", len(paths) - len(rest)) as m:
            broken = _write(work, shards, zip(rest, contents, strict=True), m)
        if broken:
            raise DataError(
                f"{len(broken):,} of {len(paths):,} images are broken, so {folder} was not written"
                + listed(broken)
            )
        _finish(work, folder, side, pd.concat(shards))
    return folder


def plan_of(side: int, paths: Sequence[str], *, compressed: bool) -> str:
    """Return the digest of all that decides what the shards hold."""
    return fingerprint_of(str(ENCODING_VERSION), str(side), str(compressed), "\n".join(paths))


def _complete_shards(work: Path, plan: str, paths: Sequence[str]) -> list[pd.DataFrame]:
    """Return the lists of the complete shards of a plan; delete what another plan left.

    The first shard that does not fit the plan and those behind it are written again.
    """
    recorded = work / PLAN
    try:
        same = read_regular(recorded, MAX_RECORD) == plan.encode()
    except OSError:
        same = False
    if not same:
        remove_folder(work)
        work.mkdir()
        write_text(recorded, plan)
    shards: list[pd.DataFrame] = []
    done = 0
    while (rows := _complete_shard(work, len(shards), paths, done)) is not None:
        shards.append(rows)
        done += len(rows)
    return shards


def _complete_shard(
    work: Path, number: int, paths: Sequence[str], done: int
) -> pd.DataFrame | None:
    """Return the list of a shard that holds the images behind the first ``done``; else None.

    A list that is taken over although it was edited gives images the names of others, and nobody
    would see it.
    """
    try:
        rows = read_csv(_list_path(work, number), COLUMNS, dict.fromkeys(COLUMNS[1:], "int64"))
        stored = os.stat(work / shard_name(number)).st_size
    except (OSError, ValueError):
        return None
    ends = rows["size"].cumsum()
    fits = (
        len(rows) > 0
        and rows["path"].tolist() == list(paths[done : done + len(rows)])
        and (rows["shard"] == number).all()
        and rows["size"].between(1, MAX_IMAGE).all()
        and (rows["offset"] == ends - rows["size"]).all()
        and ends.iloc[-1] == stored
    )
    return rows[list(COLUMNS)] if fits else None


def _list_path(work: Path, number: int) -> Path:
    return (work / shard_name(number)).with_suffix(".csv")


def _write(
    work: Path,
    shards: list[pd.DataFrame],
    contents: Iterable[tuple[str, bytes | str]],
    meter: Meter,
) -> list[str]:
    """Write shards of (path, content) and add their lists to ``shards``; return all errors.

    After the first broken image nothing more is written, but the others are still read.
    """
    broken: list[str] = []
    shard = _Shard(work, len(shards))
    try:
        for path, content in contents:
            meter.add(1)
            if isinstance(content, str):
                broken.append(content)
            elif len(content) > MAX_IMAGE:
                broken.append(
                    f"{path} takes {len(content):,} bytes, of which {MAX_IMAGE:,} are read; choose "
                    "a smaller side"
                )
            elif not broken:
                shard.add(path, content)
                if shard.size >= SHARD_BYTES:
                    shards.append(shard.finish())
                    shard = _Shard(work, len(shards))
        if not broken and shard.rows:
            shards.append(shard.finish())
    finally:
        shard.stream.close()
    return broken


class _Shard:
    """A shard that is being written."""

    def __init__(self, work: Path, number: int):
        self.work, self.number = work, number
        # its list goes first: it vouches for a complete shard
        for path in (_list_path(work, number), work / shard_name(number)):
            path.unlink(missing_ok=True)
        self.stream = open(work / shard_name(number), "xb")  # noqa: SIM115 - its user closes it
        self.size = 0
        self.rows: list[tuple[str, int, int, int]] = []

    def add(self, path: str, content: bytes) -> None:
        """Append one image."""
        self.stream.write(content)
        self.rows.append((path, self.number, self.size, len(content)))
        self.size += len(content)

    def finish(self) -> pd.DataFrame:
        """Write the list that makes the shard count as complete, and return it."""
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        table = pd.DataFrame(self.rows, columns=list(COLUMNS))
        write_text(_list_path(self.work, self.number), table.to_csv(index=False))
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


ENCODING_VERSION = 1  # raise when the bytes change
QUALITY = 95
LOSSY = ("JPEG", "MPO", "WEBP")


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
        try:
            file = path_below(self.root, path)
            content = read_regular(file, MAX_IMAGE)
            image = open_image(io.BytesIO(content), str(file))
            kind, as_stored = image_format(io.BytesIO(content), str(file))
        except OSError as error:
            return f"cannot read {file}: {error.strerror}"
        except DataError as error:
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
