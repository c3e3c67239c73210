"""Embed a dataset's evaluation images and measure retrieval."""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import EvaluationConfig
from benchmark.core.seeding import derive
from benchmark.datasets.base import Dataset, ImageSet
from benchmark.input.base import Input
from benchmark.metrics import learn_whitening
from benchmark.models import EmbeddingModel
from benchmark.training.measure import EmbeddedProtocol, Measured

# Training images that whitening is learnt on: some ten per dimension of the widest embeddings.
WHITENING_IMAGES = 20_000


class Evaluator:
    """Evaluation of one dataset, whose image tensors are prepared once."""

    def __init__(
        self,
        dataset: Dataset,
        make_input: Callable[[ImageSet], Input],
        config: EvaluationConfig,
        embedding_dim: int,
    ):
        """Raise ConfigError when whitening is to keep more dimensions than the embeddings have."""
        self.dataset, self.config, self._make_input = dataset, config, make_input
        self._inputs: dict[int, Input] = {}
        self._sample: ImageSet | None = None
        if config.whitening is None:
            return
        if config.whitening > embedding_dim:
            problem = (
                f"whitening  {config.whitening} dimensions are more than the {embedding_dim} of "
                f"the embeddings; give at most {embedding_dim}, or null"
            )
            raise ConfigError("recipe section evaluation", [problem])
        self._sample = sample_of(dataset.train, WHITENING_IMAGES)

    def embed(self, model: EmbeddingModel, device: torch.device) -> dict[str, EmbeddedProtocol]:
        """Return the embeddings of every protocol, whitened if the recipe says so.

        They are float32. The model is left in its mode.
        """
        protocols = self.dataset.protocols
        unique = {id(part): part for item in protocols.values() for part in item.image_sets()}
        training = model.training
        model.eval()
        try:
            rows = {key: self._embed(part, model, device) for key, part in unique.items()}
            sample = None if self._sample is None else self._embed(self._sample, model, device)
        finally:
            model.train(training)
        if sample is not None and self.config.whitening is not None:
            whiten = learn_whitening(sample, self.config.whitening, self.config.whitening_power)
            # one copy at a time
            rows = {key: whiten(rows.pop(key)) for key in list(rows)}
        return {name: EmbeddedProtocol.of(item, rows) for name, item in protocols.items()}

    def measure(self, embedded: dict[str, EmbeddedProtocol], device: torch.device) -> Measured:
        """Return the metrics, in [0, 1], and the queries' scores; a split for each protocol.

        Those that judge by lists have a second one of expanded queries if the recipe expands them.
        """
        # counting ranks in numpy is faster on a CPU than sorting there
        ranker = str(device) if device.type == "cuda" else None
        found = Measured()
        for name, item in embedded.items():
            measured = item.measure(name, self.config, ranker)
            found.scores.update(measured.scores)
            found.queries.update(measured.queries)
        return found

    def _embed(
        self, image_set: ImageSet, model: EmbeddingModel, device: torch.device
    ) -> np.ndarray:
        if id(image_set) not in self._inputs:
            self._inputs[id(image_set)] = self._make_input(image_set)
        images, config = self._inputs[id(image_set)], self.config

        def seen(scale: float = 1.0) -> np.ndarray:
            size, count = config.batch_size, len(image_set)
            return embed_images(model, images, count, size, device, scale)

        return seen() if config.scales is None else pooled(map(seen, config.scales), config)


@torch.inference_mode()
def embed_images(
    model: torch.nn.Module,
    images: Input,
    count: int,
    batch_size: int,
    device: torch.device,
    scale: float = 1.0,
) -> np.ndarray:
    """Return the embeddings (count, D) float32 of all ``images``, seen as test images.

    ``scale``: of their sides.
    """
    rows, start = np.empty((count, 0), np.float32), 0
    # filled in place: a million images fit once
    for batch in images.eval_batches(batch_size, scale):
        part = model(batch.to(device)).float().cpu().numpy()
        if start == 0:
            rows = np.empty((count, part.shape[1]), np.float32)
        rows[start : start + len(part)] = part
        start += len(part)
    return rows


def pooled(scales: Iterable[np.ndarray], config: EvaluationConfig) -> np.ndarray:
    """Return the unit rows (N, D) of the mean over ``scales``, each (N, D), at ``scale_power``.

    The code of SoftBinAP's authors (naver/deep-image-retrieval) pools scales so, at power 3 unless
    told otherwise; power 1 is the plain mean.
    """
    power = config.scale_power
    total: np.ndarray | None = None
    for rows in scales:
        powered = rows if power == 1 else np.copysign(np.abs(rows) ** power, rows)
        total = powered if total is None else total + powered
    assert total is not None
    mean = total / np.float32(len(config.scales or ()))
    if power != 1:
        mean = np.copysign(np.abs(mean) ** (1 / power), mean)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.float32(1e-12))


def sample_of(image_set: ImageSet, count: int) -> ImageSet:
    """Return ``count`` images of the set in their order, always the same ones; all if fewer."""
    total = len(image_set)
    if total <= count:
        return image_set
    order = np.random.default_rng(derive(0, "whitening sample", total)).permutation(total)
    chosen = np.sort(order[:count])
    return image_set.part(chosen)
