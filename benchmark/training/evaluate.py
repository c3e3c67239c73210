"""Embeds a dataset's evaluation images and measures retrieval, without touching the training's chance."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from PIL import Image

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import EvaluationConfig, InputConfig
from benchmark.core.seeding import derive
from benchmark.datasets.base import Dataset, ImageSet
from benchmark.input.base import Input
from benchmark.input.create import create_input
from benchmark.metrics import learn_whitening
from benchmark.models import EmbeddingModel
from benchmark.training.measure import EmbeddedProtocol

# Training images that whitening is learnt on: some ten per dimension of the widest embeddings.
WHITENING_IMAGES = 20_000


class Evaluator:
    """Evaluation of one dataset: image tensors are prepared once, metrics computed at every call."""

    def __init__(
        self,
        dataset: Dataset,
        images: InputConfig,
        config: EvaluationConfig,
        channels: int,
        embedding_dim: int,
    ):
        """Raises ConfigError when whitening is to keep more dimensions than the embeddings have."""
        self.dataset = dataset
        self.config = config
        self._create = lambda image_set: create_input(image_set, images, channels)
        self._inputs: dict[int, Input] = {}
        self._sample: ImageSet | None = None
        if config.whitening is None:
            return
        if config.whitening > embedding_dim:
            problem = (
                f"whitening  {config.whitening} dimensions are more than the {embedding_dim} of the embeddings; "
                f"give at most {embedding_dim}, or null"
            )
            raise ConfigError("recipe section evaluation", [problem])
        self._sample = sample_of(dataset.train, WHITENING_IMAGES)

    def embed(self, model: EmbeddingModel, device: torch.device) -> dict[str, EmbeddedProtocol]:
        """Returns the embeddings of every protocol, as float32 arrays, whitened if the recipe says so; the
        model is left in its mode."""
        protocols = self.dataset.protocols
        sets = [
            part
            for item in protocols.values()
            for part in (item.query, item.gallery)
            if part is not None
        ]
        training = model.training
        model.eval()
        try:
            rows = {
                key: self._embed(part, model, device)
                for key, part in {id(part): part for part in sets}.items()
            }
            if self._sample is not None:
                whiten = learn_whitening(
                    self._embed(self._sample, model, device), self.config.whitening
                )
                rows = {key: whiten(embedded) for key, embedded in rows.items()}
        finally:
            model.train(training)
        return {
            name: EmbeddedProtocol(
                item, rows[id(item.query)], None if item.gallery is None else rows[id(item.gallery)]
            )
            for name, item in protocols.items()
        }

    def measure(
        self, embedded: dict[str, EmbeddedProtocol], device: torch.device
    ) -> dict[str, dict[str, float]]:
        """Returns {split: {metric: value in [0, 1]}}, a split for each protocol; those that judge by lists have
        a second one of expanded queries if the recipe expands them. A GPU ranks, where ``device`` is one."""
        # counting ranks in numpy is faster on a CPU than sorting there
        ranker = str(device) if device.type == "cuda" else None
        found: dict[str, dict[str, float]] = {}
        for name, item in embedded.items():
            found |= item.measure(name, self.config, ranker)
        return found

    @torch.inference_mode()
    def _embed(
        self, image_set: ImageSet, model: EmbeddingModel, device: torch.device
    ) -> np.ndarray:
        if id(image_set) not in self._inputs:
            self._inputs[id(image_set)] = self._create(image_set)
        batches = self._inputs[id(image_set)].eval_batches(self.config.batch_size)
        rows = [model(images.to(device)).float().cpu().numpy() for images in batches]
        return np.concatenate(rows)


def sample_of(image_set: ImageSet, count: int) -> ImageSet:
    """Returns ``count`` images of the set in their order, the same at every call; the set itself if it is smaller."""
    total = len(image_set)
    if total <= count:
        return image_set
    order = np.random.default_rng(derive(0, "whitening sample", total)).permutation(total)
    places = np.sort(order[:count])
    return dataclasses.replace(
        image_set,
        labels=image_set.labels[places],
        names=[image_set.names[place] for place in places],
        opener=_Chosen(image_set, places),
        categories=None if image_set.categories is None else image_set.categories[places],
        pixels=None if image_set.pixels is None else image_set.pixels[places],
    )


class _Chosen:
    """Opens the images of a part of a set; a class, so that other processes can receive it."""

    def __init__(self, image_set: ImageSet, places: np.ndarray):
        self._image_set, self._places = image_set, places

    def __call__(self, index: int) -> Image.Image:
        return self._image_set.image(int(self._places[index]))
