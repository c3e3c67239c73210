"""The batches of an epoch: the sampler's, or mined from embeddings of the network of now."""

import numpy as np

from benchmark.core.errors import DataError
from benchmark.input.create import create_input
from benchmark.training.components import Components
from benchmark.training.evaluate import embed_images


def mine(components: Components, epoch: int) -> tuple[list[np.ndarray], int]:
    """Return the batches of ``epoch`` (from 0) and how many images were embedded to make them.

    The images of the pool are seen as test images are, and the network is left in its mode. Raise
    DataError for an epoch without a batch.
    """
    sampler, recipe, model = components.sampler, components.recipe, components.model
    if not sampler.pooled:
        return _some(sampler.epoch(epoch), epoch), 0
    pool = components.dataset.train.part(sampler.pool(epoch))
    images = create_input(pool, recipe.input, recipe.model.channels)
    training = model.training
    model.eval()
    try:
        rows = embed_images(
            model, images, len(pool), recipe.evaluation.batch_size, components.device
        )
    finally:
        model.train(training)
    return _some(sampler.mined(epoch, rows), epoch), len(pool)


def _some(batches: list[np.ndarray], epoch: int) -> list[np.ndarray]:
    if not batches:
        raise DataError(f"epoch {epoch} has no batch; every epoch must have one")
    return batches
