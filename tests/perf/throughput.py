"""Images per second of the suite's training loop, beside a bare loop around a timm network."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from perf import photographs
from perf.imagefolder import image_folder_batches
from perf.interleave import compare
from perf.loops import Training, bench_spec
from perf.sections import Measurement, Section

MIN_RATIO = 0.97  # of a bare loop's images per second
SIZE = (500, 400)  # width, height of the JPEGs, pixels
RESIZE = 256
BATCH, WORKERS = 64, 2


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure an epoch on ready batches and with their reading: glyphs and, if not quick, JPEGs."""
    measurements = []
    with tempfile.TemporaryDirectory() as folder:
        for part in [_glyphs(Path(folder), quick)] + ([] if quick else [_jpegs(Path(folder))]):
            for measurement in part:
                measurements.append(measurement)
                row = measurement.row
                show(f"  {row['what']:<32} {row['ours']:7.0f} images/s, {row['ratio']:.3f} of bare")
    note = (
        "Epochs of timm's test_resnet with SmoothAP, four images a class, one thread; images per "
        "second. Physical limit: network, loss and optimiser are the same on both sides, so that 1 "
        "is the most on ready batches."
    )
    return Section("throughput", "Training beside a bare timm loop", note, measurements)


def _glyphs(folder: Path, quick: bool) -> Iterator[Measurement]:
    images = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}
    dataset = {"name": "glyphs_tiny" if quick else "glyphs_1k", "params": {}}
    loops = Training(bench_spec(dataset, 128, 1, images), folder / "glyphs")
    repeats = 3 if quick else 4
    yield _ready("glyphs", loops, repeats)
    theirs = lambda: loops.plain(loops.read())  # noqa: E731
    yield compare("glyphs, augmented", loops.ours, theirs, repeats, at_least=MIN_RATIO)


def _jpegs(folder: Path) -> Iterator[Measurement]:
    root = folder / "classes"
    # half of a folder's classes train: three batches
    photographs.write_jpegs(root, SIZE, 2 * BATCH * 3)
    images = {"augmentation": "crop_flip", "resize": RESIZE, "workers": WORKERS}
    dataset = {"name": "folder", "params": {"root": str(root)}}
    loops = Training(bench_spec(dataset, BATCH, 3, images), folder / "jpegs")
    names = loops.components.dataset.train.names
    paths = [[names[number] for number in batch] for batch in loops.batches]
    batches = image_folder_batches(root, loops.spec.recipe.input, paths)
    yield _ready("JPEG 500x400", loops, 3)
    theirs = lambda: loops.plain(batch for batch, _ in batches())  # noqa: E731
    what = "JPEG 500x400, from files"
    yield compare(what, loops.ours, theirs, 3, at_least=MIN_RATIO, workers=WORKERS)


def _ready(name: str, loops: Training, repeats: int) -> Measurement:
    """Compare the loops on batches that are in memory."""
    batches = list(loops.read())
    return compare(
        f"{name}, ready batches",
        lambda: loops.ours(batches),
        lambda: loops.plain(batches),
        repeats,
        at_least=MIN_RATIO,
    )
