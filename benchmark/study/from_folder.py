"""A study of your own images: a look at the class folders, settings that fit them, two files.

The settings follow fixed rules, never scores: a batch holds some images of each of several classes,
and at most half of the classes, so that batches differ; fewer classes give more images of each; a
run sees about as many images whatever their number; recall is measured at numbers of neighbours
well below the number of test images.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader

from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.datasets import load_dataset

SAMPLED = 64  # images that are opened
GREY_SPREAD = 12  # between the channels of a picture that counts as grey: JPEG leaves some colour
LOSSES = ("triplet_semihard", "smooth_ap", "sup_ap", "roadmap", "fast_ap")
BATCH_SIZES = (128, 64, 32, 16, 8)
USABLE = 0.7  # least share of the training images that whole groups of a class must cover
SMALL = 5_000  # training images up to which two batch sizes and five seeds are affordable
MARGIN = 1.14  # test images are resized to this multiple of the side, and their middle is taken


@dataclass(frozen=True)
class Look:
    """A dataset of class folders in numbers.

    per_class   int64 (classes,): images of each training class
    side        median of the shorter sides of the images looked at, pixels
    seconds     mean time to read and decode one of them
    """

    counts: Mapping[str, Mapping[str, int]]
    per_class: np.ndarray
    grey: bool
    side: int
    seconds: float

    @property
    def images(self) -> int:
        """Return the number of training images."""
        return int(self.per_class.sum())


@dataclass(frozen=True)
class Network:
    """A backbone and its weights; the default learns on a CPU, from scratch.

    label         name in paths and tables
    weights       where they come from, in words; "" for a network trained from scratch
    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side of the input that the network demands, pixels; None when it takes any
    """

    backbone: str = "test_resnet"
    label: str = "test_resnet"
    weights: str = ""
    checkpoint: str | None = None
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    fixed_side: int | None = None


def look(params: Mapping[str, Any]) -> Look:
    """Return what the dataset 'folder' holds; raise DataError with all that is wrong."""
    dataset = load_dataset("folder", params)
    per_class = np.unique(dataset.train.labels, return_counts=True)[1]
    sides, grey, started = [], True, time.perf_counter()
    for images in (dataset.train, dataset.protocols["test"].query):
        for number in np.unique(np.linspace(0, len(images) - 1, SAMPLED // 2).astype(int)):
            picture = images.image(int(number))
            sides.append(min(picture.size))
            if grey and picture.mode != "L":
                small = np.asarray(picture.resize((64, 64))).astype(np.int16)
                grey = bool(np.ptp(small, axis=2).max() <= GREY_SPREAD)
    seconds = (time.perf_counter() - started) / len(sides)
    return Look(dataset.counts, per_class, grey, int(np.median(sides)), seconds)


def settings(
    found: Look, network: Network, *, gpus: int, seeds: int | None, side: int | None
) -> dict[str, Any]:
    """Return what the images decide about a study; ``seeds``, ``side``: the user's wishes."""
    samples, largest = _batches(found.per_class)
    small, quarter, tests = found.images <= SMALL, largest // 4, found.counts["test"]["images"]
    both = small and not network.weights and quarter >= 16 and quarter % samples == 0
    wanted, longest = (12_000, 20) if network.weights else (40_000, 60)
    epochs = min(max(math.ceil(wanted / found.images), 2), longest)
    recall_at = [k for k in (1, 10, 100) if 5 * k <= tests]
    default = 32 if found.side <= 48 else 64
    if network.weights:
        default = 224 if gpus else 128
    every = max(epochs // 4, 1)
    reads = epochs * found.images + math.ceil(epochs / every) * tests
    return {
        "samples": samples,
        "batch_sizes": [quarter, largest] if both and quarter > samples else [largest],
        "epochs": epochs,
        "every": every,
        "recall_at": recall_at if len(recall_at) > 1 else [1, 2],
        "seeds": list(range(seeds or (5 if small else 3))),
        "side": network.fixed_side or side or default,
        "channels": 1 if found.grey and not network.weights else 3,
        "reading_minutes": reads * found.seconds / 60,
    }


def _batches(per_class: np.ndarray) -> tuple[int, int]:
    """Return (images of a class in a batch, largest batch size that the classes fill)."""
    samples = 4 if _usable(per_class, 4) else 2
    # with few classes a batch of two or three of them is filled with more images of each
    while _largest(per_class, samples) < 32 and samples < 32 and _usable(per_class, 2 * samples):
        samples *= 2
    return samples, _largest(per_class, samples)


def _usable(per_class: np.ndarray, samples: int) -> bool:
    """Say whether groups of ``samples`` cover most images, and two classes or more have one."""
    groups = per_class // samples
    return bool((groups > 0).sum() >= 2 and groups.sum() * samples >= USABLE * per_class.sum())


def _largest(per_class: np.ndarray, samples: int) -> int:
    """Return the largest batch size of whole groups, of half of the classes at most, but of two."""
    width = max(int((per_class >= samples).sum()) // 2, 2)
    fitting = [
        size for size in BATCH_SIZES if size % samples == 0 and 2 <= size // samples <= width
    ]
    # an epoch of four batches or more where the images suffice
    long = [size for size in fitting if per_class.sum() >= 4 * size]
    return (long or fitting or [2 * samples])[0]


def write_study(
    name: str,
    params: Mapping[str, Any],
    found: Look,
    network: Network,
    chosen: Mapping[str, Any],
    *,
    gpus: int,
    out: Path,
    force: bool,
) -> tuple[Path, Path]:
    """Write ``out/NAME.yaml`` and ``out/recipes/NAME.yaml``; raise ConfigError if they exist."""
    paths = out / f"{name}.yaml", out / "recipes" / f"{name}.yaml"
    if (existing := [path for path in paths if path.exists()]) and not force:
        advice = "--force replaces it, --name writes another study"
        raise ConfigError("folder init", [f"{path} exists; {advice}" for path in existing])
    least = 120 if network.weights else 30
    colours = slice(0, chosen["channels"])
    values = {
        **chosen,
        "name": name,
        "params": dict(params),
        "title": f"Losses on {Path(str(params['root'])).name}",
        "question": _question(found, network),
        "losses": LOSSES,
        "gpus": gpus,
        "minutes": max(least, 10 * math.ceil(chosen["reading_minutes"])),
        "images": f"{found.images:,}",
        "label": network.label,
        "backbone": network.backbone,
        "pretrained": bool(network.weights),
        "checkpoint": network.checkpoint,
        "resize": math.ceil(chosen["side"] * MARGIN),
        "mean": list(network.mean[colours]),
        "std": list(network.std[colours]),
    }
    templates = Environment(
        loader=PackageLoader("benchmark.study"), trim_blocks=True, keep_trailing_newline=True
    )
    templates.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
    for path, kind in zip(paths, ("study", "recipe"), strict=True):
        write_text(path, templates.get_template(f"folder_{kind}.yaml.j2").render(values))
    return paths


def _question(found: Look, network: Network) -> str:
    train, test = found.counts["train"], found.counts["test"]
    words = (
        f"Which loss retrieves best on {test['classes']:,} classes that training never saw "
        f"({test['images']:,} images), after training on {train['classes']:,} others "
        f"({train['images']:,} images)?"
    )
    if left := found.counts.get("left out"):
        words += (
            f" {left['classes']:,} classes with too few images ({left['images']:,}) are left out."
        )
    if network.weights:
        return f"{words} The network, {network.backbone}, starts from {network.weights}."
    return (
        f"{words} The network, {network.backbone}, is small and trained from scratch: its scores "
        "compare the losses with each other, and are far below what a pretrained network reaches."
    )
