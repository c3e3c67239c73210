"""Images per second of the input pipeline, beside torchvision's ImageFolder and DataLoader."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmark.core.recipe_input import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener, open_image
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.prepare.pack import pack
from benchmark.input.create import create_input
from perf import photographs
from perf.imagefolder import image_folder_batches
from perf.interleave import compare, seconds_of
from perf.rates import machine_rates
from perf.sections import Measurement, Section

MIN_RATIO = 2.0  # of torchvision's images per second
PACKED_SIDE = 256
FILES = "images"  # folder of the JPEGs, beside their packed copies
BATCH = 64
WORKERS = 2
JUDGED = (500, 400)  # width, height of the JPEGs for which the ratio has a bound, pixels
SIZES = (JUDGED, (1000, 800))


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure reading of JPEGs, from files and from packed pixels."""
    sizes, images, repeats = (SIZES[:1], 128, 2) if quick else (SIZES, 256, 5)
    measurements = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for measurement in _compare(Path(folder) / _name(size), size, images, repeats):
                measurements.append(measurement)
                row = measurement.row
                show(
                    f"  {row['what']:<32} {row['ours']:7.0f} images/s, {row['ratio']:.2f} x theirs"
                )
        paths = sorted((Path(folder) / _name(JUDGED) / FILES).rglob("*.jpg"))[:64]
        decoding = min(seconds_of(lambda: list(map(open_image, paths))) for _ in range(3)) / 64
    pixels, floats = 3 * PACKED_SIDE * PACKED_SIDE * JUDGED[0] // JUDGED[1], 3 * 4 * 224**2
    note = (
        f"Decode, resize to {PACKED_SIDE}, random crop to 224, mirror, normalise, batches of "
        f"{BATCH}; {images} JPEGs of quality {photographs.QUALITY}; images per second. Physical "
        f"limits: for files the decoder, {1000 * decoding:.2f} ms of one core for a JPEG of "
        f"{_name(JUDGED)}, so {WORKERS / decoding:,.0f} images/s with {WORKERS} workers if nothing "
        "else took time; for packed pixels memory, for one image "
        f"{machine_rates().limit(0, pixels + floats)}."
    )
    title = "Input pipeline beside torchvision's ImageFolder"
    return Section("reading", title, note, measurements)


def _compare(root: Path, size: tuple[int, int], images: int, repeats: int) -> Iterator[Measurement]:
    """Yield the comparison for files and for packed pixels of one size."""
    config = InputConfig(augmentation="crop_flip", resize=PACKED_SIDE, workers=WORKERS)
    jpegs = photographs.write_jpegs(root / FILES, size, images)
    paths = [f"{FILES}/{path}" for path in jpegs]
    pack(root, PACKED_SIDE, paths, WORKERS, compressed=False)
    theirs = image_folder_batches(root / FILES, config, BATCH)
    batches = list(np.arange(images).reshape(-1, BATCH))
    for kind, opener in (
        ("files", ReducingOpener(root, paths)),
        ("packed pixels", PackedImages(root, PACKED_SIDE).opener(paths)),
    ):
        source = create_input(ImageSet(np.zeros(images, np.int64), paths, opener), config, 3)
        yield compare(
            f"{kind}, JPEG {_name(size)}",
            partial(_speed, partial(source.train_batches, batches, 0, 0), images),
            partial(_speed, theirs, images),
            repeats,
            at_least=MIN_RATIO if size == JUDGED else None,
            workers=WORKERS,
        )


def _speed(batches: Callable[[], Iterable[object]], images: int) -> float:
    """Return the images per second of an epoch."""
    started = time.perf_counter()
    for _ in batches():
        pass
    return images / (time.perf_counter() - started)


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
