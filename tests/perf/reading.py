"""Images per second of the input pipeline, beside torchvision's ImageFolder behind a DataLoader."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmark.core.recipe import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.prepare.pack import pack
from benchmark.input.create import create_input
from perf import pictures
from perf.imagefolder import image_folder_batches
from perf.rates import machine_rates
from perf.sections import Row, Section
from perf.targets import Target
from perf.turns import Measure, compare, seconds_of

LEAST_RATIO = 2.0  # of torchvision's images per second
PACKED_SIDE = 256
FILES = "images"  # folder of the JPEGs, beside their packed copies
BATCH = 64
WORKERS = 2
JUDGED = (500, 400)  # width, height of the JPEGs for which the ratio has a bound, pixels
SIZES = (JUDGED, (1000, 800))


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures reading of JPEGs, from files and from packed pixels."""
    sizes, images, turns = ([JUDGED], 128, 2) if quick else (SIZES, 256, 5)
    rows: list[Row] = []
    targets: list[Target] = []
    with tempfile.TemporaryDirectory() as folder:
        for row, found in _comparisons(Path(folder), sizes, images, turns):
            rows.append(row)
            targets += found
            show(
                f"  {row['what']:<32} {row['ours']:7.0f} images/s, torchvision {row['alternative']:7.0f}"
            )
        paths = sorted((Path(folder) / _name(JUDGED) / FILES).rglob("*.jpg"))[:64]
        decoding = min(seconds_of(lambda: _decode(paths)) for _ in range(3)) / len(paths)
    pixels, floats = 3 * PACKED_SIDE * PACKED_SIDE * JUDGED[0] // JUDGED[1], 3 * 4 * 224**2
    note = (
        f"Decode, resize to {PACKED_SIDE}, random crop to 224, mirror, normalise, batches of {BATCH}; {images} JPEGs "
        f"of made-up photographs, quality {pictures.QUALITY}; {WORKERS} workers on both sides, kept between epochs; "
        f"images per second, medians of {turns} turns. Physical limits: for files the decoder, {1000 * decoding:.2f} "
        f"ms of one core for a JPEG of {_name(JUDGED)}, so {WORKERS / decoding:,.0f} images/s with {WORKERS} workers "
        "if nothing else took time; for packed pixels memory, for one image "
        f"{machine_rates().limit(0, pixels + floats)}."
    )
    return Section(
        "reading",
        "Input pipeline beside torchvision's ImageFolder",
        note,
        rows,
        targets=tuple(targets),
    )


def _comparisons(
    folder: Path, sizes: Sequence[tuple[int, int]], images: int, turns: int
) -> Iterator[tuple[Row, list[Target]]]:
    config = InputConfig(augmentation="crop_flip", resize=PACKED_SIDE, workers=WORKERS)
    for size in sizes:
        root = folder / _name(size)
        paths = [f"{FILES}/{path}" for path in pictures.write_jpegs(root / FILES, size, images)]
        pack(root, PACKED_SIDE, paths, WORKERS, compressed=False)
        theirs = _reading(image_folder_batches(root / FILES, config, BATCH), images)
        openers = {
            "files": ReducingOpener(root, paths),
            "packed pixels": PackedImages(root, PACKED_SIDE).opener(paths),
        }
        batches = list(np.arange(images).reshape(-1, BATCH))
        for kind, opener in openers.items():
            source = create_input(ImageSet(np.zeros(images, np.int64), paths, opener), config, 3)
            ours = _reading(
                lambda source=source, batches=batches: source.train_batches(batches, 0, 0), images
            )
            yield compare(
                f"{kind}, JPEG {_name(size)}",
                ours,
                theirs,
                turns,
                least=LEAST_RATIO if size == JUDGED else None,
                workers=WORKERS,
            )


def _reading(batches: Callable[[], Iterable[torch.Tensor]], images: int) -> Measure:
    def turn() -> float:
        started = time.perf_counter()
        for _ in batches():
            pass
        return images / (time.perf_counter() - started)

    return turn


def _decode(paths: list[Path]) -> None:
    for path in paths:
        with Image.open(path) as image:
            image.load()


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
