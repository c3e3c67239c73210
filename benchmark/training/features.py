"""Features of a frozen backbone, computed once for all runs that need them.

The features are in ``BENCHMARK_CACHE``, below a digest of everything that decides their bits:
weights, images and their view, the code between them, packages, machine and threads. Runs that
start at the same time share the work: each run computes the parts that no other run computes.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from benchmark.core import provenance
from benchmark.core.code_version import version_of
from benchmark.core.environment import cache_folder
from benchmark.core.errors import DataError
from benchmark.core.files import replacing
from benchmark.core.recipe import Recipe
from benchmark.datasets.base import Dataset, ImageSet, fingerprint_of
from benchmark.input.tensors import Input, create_input
from benchmark.models.embedding import FrozenBackbone
from benchmark.training.evaluate import embed_images

PART = 2048  # images of a file
BATCH = 64  # images of a forward pass: the same for all recipes, since it may change the last bits
WAIT = 10.0  # seconds
CODE = ("input", "models", "datasets/io", "training/features.py", "core/recipe.py")
PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow")


class FeatureInput(Input):
    """Gives rows of features (N, F) in float32 instead of images; they are kept as they are."""

    def __init__(self, features: torch.Tensor):
        self._features = features

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the features (B, F) of ``batches[start:]``."""
        for numbers in batches[start:]:
            yield self._features.index_select(0, torch.from_numpy(numbers)).float()

    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield all features in order; ``scale`` has no effect on features."""
        for part in self._features.split(batch_size):
            yield part.float()


def given_features(image_set: ImageSet) -> FeatureInput:
    """Return the input of a set that has features and no images."""
    return FeatureInput(torch.from_numpy(image_set.features))


def extracted(dataset: Dataset, protocol: str | None, made: FrozenFeatures) -> dict[str, Any]:
    """Return the features of a dataset and what is said of its rows, as its kind 'features' reads.

    Raise DataError for a protocol that there is not, or that labels do not describe.
    """
    name = protocol or next(iter(dataset.protocols))
    tested = dataset.protocols.get(name)
    if (
        tested is None
        or tested.repeats
        or any(each is not None for each in (tested.judgements, tested.instances))
    ):
        allowed = ", ".join(dataset.protocols)
        raise DataError(
            f"'{name}' of {dataset.name} is not queries and gallery with labels; allowed: such a "
            f"protocol of {allowed}"
        )
    roles = ("test",) if tested.gallery is None else ("query", "gallery")
    sets = {"train": dataset.train, **dict(zip(roles, tested.image_sets(), strict=True))}
    arrays: dict[str, list[Any]] = defaultdict(list)
    first = 0
    for role, images in sets.items():
        arrays["embeddings"] += [part.numpy() for part in made(images).eval_batches(PART)]
        arrays["labels"].append(images.labels + first)
        arrays["names"].append(images.names)
        arrays["split"].append([role] * len(images))
        if images.categories is not None:
            arrays["categories"].append(images.categories)
        if role == "train":  # classes that test have numbers of their own
            first = int(images.labels.max(initial=-1)) + 1
    return {role: np.concatenate(parts) for role, parts in arrays.items()}


class FrozenFeatures:
    """Makes the input of an image set: the features of its images."""

    def __init__(
        self,
        backbone: FrozenBackbone,
        images_fingerprint: str,
        recipe: Recipe,
        device: torch.device,
        report: Callable[[str], None],
    ):
        """``report`` gets a line for each computed part, and may raise an error to stop."""
        self.backbone = backbone
        self.recipe = recipe
        self.device = device
        self._report = report
        self._known: dict[int, torch.Tensor] = {}
        versions = provenance.packages()
        hardware = provenance.hardware()
        self.decided_by: dict[str, Any] = {
            "weights": backbone.digest,
            "model": [recipe.model.backbone, recipe.model.pooling, recipe.model.channels],
            "view": {**asdict(recipe.input), "workers": None},
            "images": images_fingerprint,
            "code": version_of(*CODE),
            "packages": {name: versions.get(name) for name in PACKAGES},
            "platform": provenance.platform_label(),
            "machine": [hardware.cpu, *hardware.gpus, provenance.kernels()],
            "threads": recipe.training.threads,
            "sizes": [PART, BATCH],
        }

    def __call__(self, image_set: ImageSet) -> FeatureInput:
        """Return the input of ``image_set``; a part of a set takes the rows of the whole set."""
        images, numbers = image_set.origin or (image_set, np.arange(len(image_set)))
        if id(images) not in self._known:
            self._known[id(images)] = self._features(images)
        return FeatureInput(self._known[id(images)][torch.from_numpy(numbers)])

    def _features(self, images: ImageSet) -> torch.Tensor:
        """Return the features (N, F) of a set, from the cache as far as they are in it."""
        pixels = [] if images.pixels is None else [images.pixels]
        content = fingerprint_of("\n".join(images.names), images.labels, *pixels)
        decided_by = json.dumps({**self.decided_by, "set": content}, sort_keys=True)
        folder = cache_folder() / "features" / fingerprint_of(decided_by)
        starts = range(0, len(images), PART)
        features: dict[int, np.ndarray] = {}
        patience = 0.0  # do not wait for a part of another run while other parts are free
        while len(features) < len(starts):
            before = len(features)
            for start in starts:
                if start not in features:
                    chosen = images.part(np.arange(start, min(start + PART, len(images))))
                    with contextlib.suppress(Timeout):
                        path = folder / f"{start // PART:05d}.npz"
                        features[start] = self._part(path, chosen, patience)
            patience = 0.0
            if len(features) == before:
                patience = WAIT
                self._report("waiting for another run that computes features")
        if not features:
            return torch.empty(0, 0)
        return torch.from_numpy(np.concatenate([features[start] for start in starts]))

    def _part(self, path: Path, images: ImageSet, patience: float) -> np.ndarray:
        """Return the features of a part; raise Timeout while another run computes them."""
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_suffix(".lock"), timeout=patience):
                if not path.exists():
                    recipe = self.recipe
                    view = create_input(images, recipe.input, recipe.model.channels, self.device)
                    rows = embed_images(self.backbone, view, len(images), BATCH, self.device)
                    with replacing(path) as temporary, open(temporary, "wb") as stream:
                        np.savez(stream, features=rows)
                    self._report(f"computed the features of {len(images):,} images")
        with np.load(path) as arrays:
            return arrays["features"]
