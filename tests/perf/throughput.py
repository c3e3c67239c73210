"""Images per second of the suite's training loop, beside a bare loop around a timm network."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from perf import pictures
from perf.imagefolder import image_folder_batches
from perf.loops import Training, bench_spec
from perf.sections import Row, Section
from perf.targets import Target
from perf.turns import compare

LEAST_RATIO = 0.97  # of a bare loop's images per second
SIZE = (500, 400)  # width, height of the JPEGs, pixels
RESIZE = 256
BATCH, WORKERS = 64, 2


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures an epoch on glyphs and (unless ``quick``) on JPEGs: on batches that are ready, and with their making."""
    rows: list[Row] = []
    targets: list[Target] = []
    with tempfile.TemporaryDirectory() as folder:
        for rounds in [_glyphs(Path(folder), quick)] + ([] if quick else [_jpegs(Path(folder))]):
            for row, found in rounds:
                rows.append(row)
                targets += found
                show(
                    f"  {row['what']:<32} {row['ours']:7.0f} images/s, bare loop {row['alternative']:7.0f}"
                )
    note = (
        "Epochs of timm's test_resnet with SmoothAP, four images a class, one thread; images per second, medians of "
        "turns. The bare loop is network, loss and optimiser with the same layout of memory; it reads glyphs as the "
        f"suite does and JPEGs through torchvision's ImageFolder, both with {WORKERS} workers. Physical limit: the "
        "network, loss and optimiser are the same on both sides, so that 1 is the most on ready batches."
    )
    return Section(
        "throughput", "Training beside a bare timm loop", note, rows, targets=tuple(targets)
    )


def _glyphs(folder: Path, quick: bool) -> Iterator[tuple[Row, list[Target]]]:
    turns = 3 if quick else 4
    images = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}
    dataset = {"name": "glyphs_tiny" if quick else "glyphs_1k", "params": {}}
    loops = Training(bench_spec(dataset, 128, 1, images), folder / "glyphs")
    ready = list(loops.read())
    yield compare(
        "glyphs, ready batches",
        lambda: loops.ours(ready),
        lambda: loops.plain(ready),
        turns,
        least=LEAST_RATIO,
    )
    yield compare(
        "glyphs, augmented", loops.ours, lambda: loops.plain(loops.read()), turns, least=LEAST_RATIO
    )


def _jpegs(folder: Path) -> Iterator[tuple[Row, list[Target]]]:
    turns, root = 3, folder / "classes"
    pictures.write_jpegs(
        root, SIZE, 2 * BATCH * 3
    )  # half of a folder's classes are trained on: three batches
    images = {"augmentation": "crop_flip", "resize": RESIZE, "workers": WORKERS}
    dataset = {"name": "folder", "params": {"root": str(root)}}
    loops = Training(bench_spec(dataset, BATCH, 3, images), folder / "jpegs")
    names = loops.parts.dataset.train.names
    paths = [[names[number] for number in batch] for batch in loops.batches]
    theirs = image_folder_batches(root, loops.spec.recipe.input, paths)
    ready = list(loops.read())
    yield compare(
        "JPEG 500x400, ready batches",
        lambda: loops.ours(ready),
        lambda: loops.plain(ready),
        turns,
        least=LEAST_RATIO,
    )
    yield compare(
        "JPEG 500x400, from files",
        loops.ours,
        lambda: loops.plain(batch for batch, _ in theirs()),
        turns,
        least=LEAST_RATIO,
        workers=WORKERS,
    )
