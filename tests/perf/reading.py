"""The input pipeline beside what users of torchvision write."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from perf.timing import Row, compare
from PIL import Image
from torch.utils.data import DataLoader

from benchmark.core.recipe import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.packed import PackedImages, pack
from benchmark.input.tensors import create_input
from benchmark.models.backbone import prepare_torchvision

Batches = Callable[[], Iterable[Any]]
MIN_RATIO = 2.0  # of torchvision's images per second
SIDE = 256
BATCH = 64
WORKERS = 2
JUDGED = (500, 400)  # width and height of the JPEGs that have a bound
LARGE = (1000, 800)
# Size and workers: on two cores, one worker leaves a core to the training process, two do not.
CASES = ((JUDGED, 1), (JUDGED, WORKERS), (LARGE, WORKERS))
JPEGS = {"augmentation": "crop_flip", "resize": SIDE}


def reading(quick: bool) -> Iterator[Row]:
    """Images per second of the input pipeline, from files and from packed pixels, beside
    torchvision's ImageFolder and DataLoader: decode, resize to 256, random crop to 224, mirror,
    normalise, batches of 64.
    """
    cases, images, repeats = (CASES[1:2], 128, 2) if quick else (CASES, 256, 5)
    batches = list(np.arange(images).reshape(-1, BATCH))
    for size, workers in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            config = InputConfig(**JPEGS, workers=workers)
            paths = [f"images/{path}" for path in write_jpegs(root / "images", size, images)]
            pack(root, SIDE, paths, workers, compressed=False)
            theirs = partial(_speed, image_folder(root / "images", config, batches), images)
            packed = PackedImages(root, SIDE).opener(paths)
            openers = {"files": ReducingOpener(root, paths), "packed pixels": packed}
            for kind, opener in openers.items():
                source = ImageSet(np.zeros(images, np.int64), paths, opener)
                read = partial(create_input(source, config, 3).train_batches, batches, 0, 0)
                what = f"{kind}, JPEG {size[0]}x{size[1]}, workers: {workers}"
                bound = MIN_RATIO if size == JUDGED else None
                yield compare(what, partial(_speed, read, images), theirs, repeats, bound)


def _speed(batches: Batches, images: int) -> float:
    """Return the images per second of an epoch."""
    started = time.perf_counter()
    for _ in batches():
        pass
    return images / (time.perf_counter() - started)


def write_jpegs(root: Path, size: tuple[int, int], count: int) -> list[str]:
    """Write made-up photographs (shapes with grain) into class folders; return their paths."""
    generator, (width, height) = np.random.default_rng(0), size
    paths = [f"class{number // 8:03d}/{number:05d}.jpg" for number in range(count)]
    for path in paths:
        patches = generator.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC))
        grain = generator.normal(0.0, 8.0, (height, width, 1)).astype(np.float32)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        image.save(root / path, quality=90)
    return paths


def image_folder(root: Path, config: InputConfig, batches: Sequence[Sequence[int]]) -> Batches:
    """Return what a user would write: a function that gives an epoch of [images, labels].

    ``batches``: numbers of the JPEGs, which lie in their order in the folder.
    """
    prepare_torchvision()
    from torchvision import datasets, transforms

    crop = (config.image_size, config.crop_area, config.crop_aspect)
    steps = [
        transforms.Resize(config.resize),
        transforms.RandomResizedCrop(*crop),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(config.mean, config.std),
    ]
    images = datasets.ImageFolder(str(root), transforms.Compose(steps))
    workers = {"num_workers": config.workers, "persistent_workers": True}
    loader = DataLoader(images, batch_sampler=batches, **workers)
    return lambda: loader
