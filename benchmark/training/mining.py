"""The batches of an epoch: the sampler's, or mined from embeddings of the network of now."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmark.core.errors import DataError
from benchmark.input.create import create_input
from benchmark.input.samplers import SAMPLERS, Sampler
from benchmark.losses.settings import settings_kept_by
from benchmark.training.components import Components
from benchmark.training.evaluate import embed_images


def mine(components: Components, epoch: int) -> tuple[list[np.ndarray], int]:
    """Return the batches of ``epoch`` (from 0) and how many images were embedded to make them.

    The images of the pool are seen as test images are, and the network is left in its mode. Raise
    DataError for batches that are none.
    """
    sampler, recipe, model = components.sampler, components.recipe, components.model
    if not sampler.pooled:
        with _named(sampler):
            batches = sampler.epoch(epoch)
            if type(sampler).epoch is not Sampler.epoch:
                batches = sampler.sound(batches)  # of a plugin that makes its epochs by itself
            return _some(batches, epoch), 0
    with _named(sampler):
        (numbers,) = sampler.sound([sampler.pool(epoch)])
    pool = components.dataset.train.part(numbers)
    images = create_input(pool, recipe.input, recipe.model.channels)
    training = model.training
    model.eval()
    try:
        rows = embed_images(
            model, images, len(pool), recipe.evaluation.batch_size, components.device
        )
    finally:
        model.train(training)
    with _named(sampler):
        return _some(sampler.sound(sampler.mined(epoch, rows)), epoch), len(pool)


@contextmanager
def _named(sampler: Sampler) -> Iterator[None]:
    """Name the sampler of a plugin in what it raises, and in settings that it changes."""
    try:
        with settings_kept_by(SAMPLERS, type(sampler)):
            yield
    except Exception as error:
        SAMPLERS.raise_named(error, type(sampler))


def _some(batches: list[np.ndarray], epoch: int) -> list[np.ndarray]:
    if not batches:
        raise DataError(f"epoch {epoch} has no batch; every epoch must have one")
    return batches
