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
from benchmark.datasets.io.images import ReducingOpener, open_pixels
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
JUDGED = (500, 400)  # width, height of the JPEGs for which the ratio has a bound, pixels
LARGE = (1000, 800)
# Size and workers: on two cores, one worker leaves a core to the training process, two do not.
CASES = ((JUDGED, 1), (JUDGED, 2), (LARGE, 2))


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure reading of JPEGs, from files and from packed pixels."""
    cases, images, repeats = (CASES[1:2], 128, 2) if quick else (CASES, 256, 5)
    measurements = []
    with tempfile.TemporaryDirectory() as folder:
        for size, workers in cases:
            root = Path(folder) / _name(size)
            for measurement in _compare(root, size, workers, images, repeats):
                measurements.append(measurement)
                row = measurement.row
                show(
                    f"  {row['what']:<43} {row['ours']:7.0f} images/s, {row['ratio']:.2f} x theirs"
                )
        paths = sorted((Path(folder) / _name(JUDGED) / FILES).rglob("*.jpg"))[:64]
        decoding = min(seconds_of(lambda: list(map(open_pixels, paths))) for _ in range(3)) / 64
    rates = machine_rates()
    pixels, floats = 3 * PACKED_SIDE * PACKED_SIDE * JUDGED[0] // JUDGED[1], 3 * 4 * 224**2
    note = (
        f"Decode, resize to {PACKED_SIDE}, random crop to 224, mirror, normalise, batches of "
        f"{BATCH}; {images} JPEGs of quality {photographs.QUALITY}; images per second. Physical "
        f"limits: for files the decoder, {1000 * decoding:.2f} ms of one core for a JPEG of "
        f"{_name(JUDGED)}, so {1 / decoding:,.0f} images/s for each worker if nothing else took "
        f"time; for packed pixels memory, for one image {rates.limit(0, pixels + floats)}."
    )
    title = "Input pipeline beside torchvision's ImageFolder"
    return Section("reading", title, note, measurements)


def _compare(
    root: Path, size: tuple[int, int], workers: int, images: int, repeats: int
) -> Iterator[Measurement]:
    """Yield the comparison for files and for packed pixels of one size."""
    config = InputConfig(augmentation="crop_flip", resize=PACKED_SIDE, workers=workers)
    jpegs = photographs.write_jpegs(root / FILES, size, images)
    paths = [f"{FILES}/{path}" for path in jpegs]
    pack(root, PACKED_SIDE, paths, workers, compressed=False)
    theirs = image_folder_batches(root / FILES, config, BATCH)
    batches = list(np.arange(images).reshape(-1, BATCH))
    for kind, opener in (
        ("files", ReducingOpener(root, paths)),
        ("packed pixels", PackedImages(root, PACKED_SIDE).opener(paths)),
    ):
        source = create_input(ImageSet(np.zeros(images, np.int64), paths, opener), config, 3)
        yield compare(
            f"{kind}, JPEG {_name(size)}, workers: {workers}",
            partial(_speed, partial(source.train_batches, batches, 0, 0), images),
            partial(_speed, theirs, images),
            repeats,
            at_least=MIN_RATIO if size == JUDGED else None,
            workers=workers,
        )


def _speed(batches: Callable[[], Iterable[object]], images: int) -> float:
    """Return the images per second of an epoch."""
    started = time.perf_counter()
    for _ in batches():
        pass
    return images / (time.perf_counter() - started)


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
