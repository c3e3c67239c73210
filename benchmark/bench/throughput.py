"""Images per second of training and of the input pipeline, beside a bare timm loop and torchvision's ImageFolder.

Both sides of a comparison run in one process and take turns, so that a disturbance of the machine meets both.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.bench import pictures
from benchmark.bench.imagefolder import image_folder_batches
from benchmark.bench.loops import Training, bench_spec
from benchmark.datasets.base import ImageSet
from benchmark.datasets.files import ReducingOpener
from benchmark.datasets.packed import PackedImages
from benchmark.input import create_input
from benchmark.preparing.pack import pack
from benchmark.recipe import InputConfig, section

LOOP_TARGET = 0.97  # of a bare loop's images per second
INPUT_TARGET = 2.0  # times those of torchvision
PACKED_SIDE = 256
FILES = "images"  # folder of the JPEGs, beside their packed copies
BATCH = 64
WORKERS = 2
SIZES = ((500, 400), (1000, 800))  # of the JPEGs, pixels

Round = Callable[[], float]  # images per second


def measure_throughput(quick: bool) -> list[dict[str, Any]]:
    """Returns a row per comparison: ``what``; ``ours`` and ``alternative`` in images per second; their ``ratio``, the
    median over turns; its ``target``, or None; ``workers``; ``threads``; and the 1-minute ``load`` of the machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [*_input_rows(Path(folder), quick), *_training_rows(Path(folder), quick)]


def compare(
    what: str, ours: Round, alternative: Round, turns: int, *, target: float | None, workers: int = 0
) -> dict[str, Any]:
    """Returns the row of one comparison; the first turn of either side is not counted."""
    ours(), alternative()
    pairs = [(ours(), alternative()) for _ in range(turns)]
    return {
        "what": what,
        "ours": statistics.median(pair[0] for pair in pairs),
        "alternative": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[0] / pair[1] for pair in pairs),
        "target": target,
        "workers": workers,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
    }


def _input_rows(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Compares reading with reading: decode, resize to 256, random crop to 224, mirror, normalise, batch."""
    config = InputConfig(augmentation="crop_flip", resize=PACKED_SIDE, workers=WORKERS)
    images, turns = (128, 2) if quick else (512, 5)
    rows = []
    for size in SIZES:
        root = folder / f"{size[0]}x{size[1]}"
        paths = [f"{FILES}/{path}" for path in pictures.write_jpegs(root / FILES, size, images)]
        pack(root, PACKED_SIDE, paths, WORKERS, compressed=False)
        theirs = _reading(image_folder_batches(root / FILES, config, BATCH), images)
        for kind, opener in (
            ("files", ReducingOpener(root, paths)),
            ("packed", PackedImages(root, PACKED_SIDE).opener(paths)),
        ):
            source = create_input(ImageSet(np.zeros(images, np.int64), paths, opener), config, 3)
            batches = list(np.arange(images).reshape(-1, BATCH))
            ours = _reading(lambda source=source, batches=batches: source.train_batches(batches, 0, 0), images)
            # a large part of the images has to be wanted before decoding less of them can double the speed
            target = INPUT_TARGET if kind == "packed" or size != SIZES[0] else None
            what = f"input, {kind}, JPEG {size[0]}x{size[1]}"
            rows.append(compare(what, ours, theirs, turns, target=target, workers=WORKERS))
    return rows


def _reading(batches: Callable[[], Iterable], images: int) -> Round:
    def turn() -> float:
        started = time.perf_counter()
        for _ in batches():
            pass
        return images / (time.perf_counter() - started)

    return turn


def _training_rows(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Compares the suite's training loop with a bare one: on batches that are ready, and with their making."""
    turns = 3 if quick else 9
    glyph = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}
    dataset = {"name": "glyphs_tiny" if quick else "glyphs_1k", "params": {}}
    glyphs = Training(bench_spec(dataset, 128, 1, glyph), folder / "glyphs")
    ready = list(glyphs.read())
    rows = [
        compare(
            "training, glyphs, ready batches",
            lambda: glyphs.ours(ready),
            lambda: glyphs.plain(ready),
            turns,
            target=LOOP_TARGET,
        ),
        compare(
            "training, glyphs, augmented", glyphs.ours, lambda: glyphs.plain(glyphs.read()), turns, target=LOOP_TARGET
        ),
    ]
    root = folder / "classes"
    pictures.write_jpegs(root, SIZES[0], 256 if quick else 768)
    turns = 1 if quick else 5  # an epoch takes half a minute on one core
    crop = {"augmentation": "crop_flip", "resize": PACKED_SIDE, "workers": WORKERS}
    jpegs = Training(bench_spec({"name": "folder", "params": {"root": str(root)}}, BATCH, 3, crop), folder / "jpegs")
    names = jpegs.parts.dataset.train.names
    paths = [[names[number] for number in batch] for batch in jpegs.batches]
    theirs = image_folder_batches(root, section(jpegs.spec.recipe, "input"), paths)
    images = list(jpegs.read())
    return [
        *rows,
        compare(
            "training, JPEG 500x400, ready batches",
            lambda: jpegs.ours(images),
            lambda: jpegs.plain(images),
            turns,
            target=LOOP_TARGET,
        ),
        compare(
            "training, JPEG 500x400, from files",
            jpegs.ours,
            lambda: jpegs.plain(batch for batch, _ in theirs()),
            turns,
            target=LOOP_TARGET,
            workers=WORKERS,
        ),
    ]
