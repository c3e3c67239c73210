"""Images per second of the input pipeline, beside torchvision's ImageFolder and DataLoader: decode,
resize to 256, random crop to 224, mirror, normalise, batches of 64.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader

from benchmark.core.recipe_input import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.prepare.pack import pack
from benchmark.input.create import create_input
from benchmark.models.vision_ops import prepare_torchvision
from perf.timing import Row, compare

MIN_RATIO = 2.0  # of torchvision's images per second
SIDE, BATCH, PER_CLASS, QUALITY = 256, 64, 8, 90
JUDGED, LARGE = (500, 400), (1000, 800)  # width, height of the JPEGs; the first has a bound
# Size and workers: on two cores, one worker leaves a core to the training process, two do not.
CASES = ((JUDGED, 1), (JUDGED, 2), (LARGE, 2))


def rows(quick: bool) -> Iterator[Row]:
    """Measure reading of JPEGs, from files and from packed pixels."""
    cases, images, repeats = (CASES[1:2], 128, 2) if quick else (CASES, 256, 5)
    for size, workers in cases:
        with tempfile.TemporaryDirectory() as folder:
            yield from _compare(Path(folder), size, workers, images, repeats)


def _compare(
    root: Path, size: tuple[int, int], workers: int, images: int, repeats: int
) -> Iterator[Row]:
    config = InputConfig(augmentation="crop_flip", resize=SIDE, workers=workers)
    paths = [f"images/{path}" for path in write_jpegs(root / "images", size, images)]
    pack(root, SIDE, paths, workers, compressed=False)
    theirs = image_folder_batches(root / "images", config, BATCH)
    batches = list(np.arange(images).reshape(-1, BATCH))
    for kind, opener in (
        ("files", ReducingOpener(root, paths)),
        ("packed pixels", PackedImages(root, SIDE).opener(paths)),
    ):
        source = create_input(ImageSet(np.zeros(images, np.int64), paths, opener), config, 3)
        yield compare(
            f"{kind}, JPEG {size[0]}x{size[1]}, workers: {workers}",
            partial(_speed, partial(source.train_batches, batches, 0, 0), images),
            partial(_speed, theirs, images),
            repeats,
            at_least=MIN_RATIO if size == JUDGED else None,
        )


def _speed(batches: Callable[[], Iterable[object]], images: int) -> float:
    """Return the images per second of an epoch."""
    started = time.perf_counter()
    for _ in batches():
        pass
    return images / (time.perf_counter() - started)


def write_jpegs(root: Path, size: tuple[int, int], count: int) -> list[str]:
    """Write made-up photographs (shapes with grain) into class folders; return their paths."""
    generator, (width, height) = np.random.default_rng(0), size
    paths = [f"class{number // PER_CLASS:03d}/{number:05d}.jpg" for number in range(count)]
    for path in paths:
        patches = generator.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC))
        grain = generator.normal(0.0, 8.0, (height, width, 1)).astype(np.float32)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        image.save(root / path, quality=QUALITY)
    return paths


def image_folder_batches(
    root: Path, config: InputConfig, batches: int | Sequence[Sequence[str]]
) -> Callable[[], Iterable[Any]]:
    """Return what a user would write: a function that gives an epoch of [images, labels].

    ``batches``: a batch size for all images in order, or batches of paths relative to ``root``.
    """
    prepare_torchvision()
    from torchvision import datasets, transforms

    steps = [
        *([] if config.resize is None else [transforms.Resize(config.resize)]),
        transforms.RandomResizedCrop(
            config.image_size, scale=config.crop_area, ratio=config.crop_aspect
        ),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(config.mean, config.std),
    ]
    images = datasets.ImageFolder(str(root), transforms.Compose(steps))
    chosen: dict[str, Any] = {"batch_size": batches}
    if not isinstance(batches, int):
        numbers = {
            Path(path).relative_to(root).as_posix(): number
            for number, (path, _) in enumerate(images.samples)
        }
        chosen = {"batch_sampler": [[numbers[path] for path in batch] for batch in batches]}
    loader = DataLoader(
        images, num_workers=config.workers, persistent_workers=config.workers > 0, **chosen
    )
    return lambda: loader
