"""Embeds a dataset's evaluation images and measures retrieval, without touching the training's chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from benchmark.datasets.base import Dataset, ImageSet, Protocol
from benchmark.input import Input, create_input
from benchmark.metrics import retrieval_metrics
from benchmark.models import EmbeddingModel
from benchmark.recipe import EvaluationConfig, InputConfig


@dataclass(frozen=True)
class EmbeddedProtocol:
    """Embeddings of one protocol: (Q, D) queries and (G, D) gallery, or None when the set queries itself."""

    protocol: Protocol
    query: np.ndarray
    gallery: np.ndarray | None

    @property
    def finite(self) -> bool:
        """Whether every embedding is a number."""
        parts = [self.query] if self.gallery is None else [self.query, self.gallery]
        return all(np.isfinite(part).all() for part in parts)


class Evaluator:
    """Evaluation of one dataset: image tensors are prepared once, metrics computed at every call."""

    def __init__(self, dataset: Dataset, images: InputConfig, config: EvaluationConfig, channels: int):
        self.dataset = dataset
        self.config = config
        self._create = lambda image_set: create_input(image_set, images, channels)
        self._inputs: dict[int, Input] = {}

    def embed(self, model: EmbeddingModel, device: torch.device) -> dict[str, EmbeddedProtocol]:
        """Returns the embeddings of every protocol, as float32 arrays; the model is left in its mode."""
        training = model.training
        model.eval()
        try:
            done: dict[int, np.ndarray] = {}
            embedded = {}
            for name, protocol in self.dataset.protocols.items():
                sets = [protocol.query] if protocol.gallery is None else [protocol.query, protocol.gallery]
                for image_set in sets:
                    if id(image_set) not in done:
                        done[id(image_set)] = self._embed(image_set, model, device)
                gallery = None if protocol.gallery is None else done[id(protocol.gallery)]
                embedded[name] = EmbeddedProtocol(protocol, done[id(protocol.query)], gallery)
            return embedded
        finally:
            model.train(training)

    def measure(self, embedded: dict[str, EmbeddedProtocol]) -> dict[str, dict[str, float]]:
        """Returns {protocol: {metric: value in [0, 1]}}."""
        return {
            name: retrieval_metrics(
                item.query,
                item.protocol.query.labels,
                item.gallery,
                None if item.protocol.gallery is None else item.protocol.gallery.labels,
                recall_at=tuple(self.config.recall_at),
            )
            for name, item in embedded.items()
        }

    @torch.inference_mode()
    def _embed(self, image_set: ImageSet, model: EmbeddingModel, device: torch.device) -> np.ndarray:
        if id(image_set) not in self._inputs:
            self._inputs[id(image_set)] = self._create(image_set)
        batches = self._inputs[id(image_set)].eval_batches(self.config.batch_size)
        rows = [model(images.to(device)).float().cpu().numpy() for images in batches]
        return np.concatenate(rows)
