"""Settings that fit the size of a dataset, decided by fixed rules: never by looking at scores.

The rules follow what the sampler, the time and the evaluation demand:

- a batch holds ``samples`` images of each of several classes, and at most half of the classes, so
  that batches differ
- fewer classes give more images of each, up to what most classes have
- a run sees about ``IMAGES_SEEN`` images, in at least 2 epochs
- recall is measured at numbers of neighbours well below the number of test images
"""

import math
from dataclasses import dataclass

import numpy as np

from benchmark.study.from_folder.look import Look, Network

IMAGES_SEEN = {False: 40_000, True: 12_000}  # by whether the network is pretrained
LONGEST = {False: 60, True: 20}  # epochs
BATCH_SIZES = (128, 64, 32, 16, 8)
USABLE = 0.7  # least share of the training images that whole groups of ``samples`` must cover
SMALL = 5_000  # training images up to which two batch sizes and five seeds are affordable
LOSSES = ("triplet_semihard", "smooth_ap", "sup_ap", "roadmap", "fast_ap")


@dataclass(frozen=True)
class Settings:
    """What the images decide about a study."""

    samples: int
    batch_sizes: tuple[int, ...]
    epochs: int
    every: int
    recall_at: tuple[int, ...]
    seeds: tuple[int, ...]
    side: int
    channels: int


def settings(
    look: Look, network: Network, *, gpus: int, seeds: int | None, side: int | None
) -> Settings:
    """Return settings for these images and network; ``seeds``, ``side``: the user's wishes."""
    samples, largest = _batches(look.per_class)
    small = look.images <= SMALL
    quarter = largest // 4
    both = (
        small
        and not network.pretrained
        and quarter >= 16
        and quarter % samples == 0
        and quarter > samples
    )
    wanted = IMAGES_SEEN[network.pretrained]
    epochs = min(max(math.ceil(wanted / look.images), 2), LONGEST[network.pretrained])
    return Settings(
        samples=samples,
        batch_sizes=(quarter, largest) if both else (largest,),
        epochs=epochs,
        every=max(epochs // 4, 1),
        recall_at=_recall_at(look.counts["test"]["images"]),
        seeds=tuple(range(seeds or (5 if small else 3))),
        side=network.fixed_side or side or _side(look, network, gpus),
        channels=1 if look.grey and not network.pretrained else 3,
    )


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
    classes = int((per_class >= samples).sum())
    width = max(classes // 2, 2)
    fitting = [
        size for size in BATCH_SIZES if size % samples == 0 and 2 <= size // samples <= width
    ]
    # an epoch of four batches or more where the images suffice
    long = [size for size in fitting if per_class.sum() >= 4 * size]
    return (long or fitting or [2 * samples])[0]


def _recall_at(images: int) -> tuple[int, ...]:
    """Return the K of recall for a test set of ``images``."""
    chosen = [k for k in (1, 10, 100) if 5 * k <= images]
    return tuple(chosen if len(chosen) > 1 else (1, 2))


def _side(look: Look, network: Network, gpus: int) -> int:
    """Return the side of the input, pixels; without a GPU one that trains in minutes."""
    if network.pretrained:
        return 224 if gpus else 128
    return 32 if look.side <= 48 else 64
