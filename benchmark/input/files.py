"""Images from files: decoded by the training process or by workers, with the same bits either way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmark.datasets.base import ImageSet
from benchmark.errors import DataError
from benchmark.input.base import Input, normalisation
from benchmark.input.transforms import eval_transform, train_transform
from benchmark.recipe import InputConfig
from benchmark.seeding import derive


class FileInput(Input):
    """Opens, transforms and normalises images one by one; chance is seeded per image, not per worker."""

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.image_set, self.config, self.channels = image_set, config, channels
        self._mean, self._std = normalisation(config, channels)
        self._loader: DataLoader | None = None
        self._plan = _Plan()

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yields the augmented tensors of ``batches[start:]``."""
        jobs = [(place, batches[place].tolist(), seed, epoch) for place in range(start, len(batches))]
        yield from self._tensors(jobs)

    def eval_batches(self, batch_size: int) -> Iterator[torch.Tensor]:
        """Yields all images in order."""
        total = len(self.image_set)
        jobs = [(at, list(range(at, min(at + batch_size, total))), None, 0) for at in range(0, total, batch_size)]
        yield from self._tensors(jobs)

    def _tensors(self, jobs: list[tuple]) -> Iterator[torch.Tensor]:
        if self._loader is None:
            views = _Views(self.image_set, self.config, self.channels)
            workers = self.config.workers
            self._loader = DataLoader(
                views,
                batch_size=None,
                sampler=self._plan,
                num_workers=workers,
                persistent_workers=workers > 0,
                prefetch_factor=2 if workers else None,
            )
        self._plan.jobs = jobs
        for pixels in self._loader:
            if isinstance(pixels, str):
                raise DataError(pixels)
            images = pixels.permute(0, 3, 1, 2).float() / 255.0
            yield ((images - self._mean) / self._std).contiguous(memory_format=torch.channels_last)


class _Plan:
    """The jobs of the epoch at hand, read by the loader at each start: workers outlive their epochs."""

    def __init__(self) -> None:
        self.jobs: list[tuple] = []

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class _Views(Dataset):
    """Decodes the images of one job: (place, image numbers, seed or None for evaluation, epoch).

    A broken image is returned as its message: an exception would reach the training process as the text of
    a worker's traceback, in the name of an error that its command line cannot tell from others.
    """

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.image_set, self.config = image_set, config
        self.mode = "L" if channels == 1 else "RGB"

    def __getitem__(self, job: tuple) -> torch.Tensor | str:
        try:
            return self._decode(job)
        except DataError as error:
            return str(error)

    def _decode(self, job: tuple) -> torch.Tensor:
        place, numbers, seed, epoch = job
        views = []
        for offset, number in enumerate(numbers):
            picture = self.image_set.image(number).convert(self.mode)
            if seed is None:
                view = eval_transform(picture, self.config)
            else:
                chance = np.random.default_rng(derive(seed, "augmentation", epoch, place, offset))
                view = train_transform(picture, self.config, chance)
            array = np.asarray(view)
            views.append(array[..., None] if array.ndim == 2 else array)
        return torch.from_numpy(np.stack(views))
