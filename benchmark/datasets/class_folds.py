"""A view of another dataset for choosing settings: some training classes are held out and ranked.

The test images of the dataset are never shown, so that nothing can be chosen on them.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option, options
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS, load_dataset
from benchmark.datasets.base import Dataset, DatasetLoader, ImageSet, Protocol, fingerprint_of


@DATASETS.register("class_folds", display="Held-out training classes")
class ClassFolds(DatasetLoader):
    """Fold ``fold`` of ``folds`` of the training classes of a dataset; the others are trained on.

    The classes are shuffled once, by a fixed seed, and dealt out to the folds in turn.
    """

    @options
    class Config:
        of: str = option(help="registry name of the dataset")
        params: dict[str, Any] = option({}, help="parameters of that dataset")
        folds: int = option(2, at_least=2, help="parts that the training classes are divided into")
        fold: int = option(0, at_least=0, help="the part that is left out of training")

    def load(self) -> Dataset:
        """Return the view; raise DataError if the fold does not exist or has too few classes."""
        config = self.config
        dataset = load_dataset(config.of, config.params)
        classes = np.unique(dataset.train.labels)
        where = f"fold {config.fold} of {config.folds} of '{config.of}'"
        if config.fold >= config.folds or len(classes) < 2 * config.folds:
            raise DataError(
                f"{where} does not exist: folds count from 0, and its {len(classes)} training "
                "classes must give two to each"
            )
        order = np.random.default_rng(derive(0, "class folds")).permutation(classes)
        held = np.isin(dataset.train.labels, order[config.fold :: config.folds])
        train = _renumbered(dataset.train.part(np.flatnonzero(~held)))
        held_out = _renumbered(dataset.train.part(np.flatnonzero(held)))
        fingerprint = fingerprint_of(dataset.fingerprint, f"{config.folds} {config.fold}")
        protocols = {"held_out": Protocol(held_out)}
        return Dataset(
            where,
            train,
            protocols,
            fingerprint,
            dataset.metrics,
            images_fingerprint=dataset.images_fingerprint,
        )


def _renumbered(images: ImageSet) -> ImageSet:
    """Return the images with classes that are numbered from 0."""
    labels = np.unique(images.labels, return_inverse=True)[1].astype(np.int64)
    return replace(images, labels=labels)
