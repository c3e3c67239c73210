"""Images from files: decoded by the training process or by workers, with the same bits either way.

Workers start once and share the work of each batch: they decode pieces of it, which reach this
process as uint8 through shared memory and become floats directly in the batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from benchmark.core.errors import DataError
from benchmark.core.interrupts import ignore_interrupts
from benchmark.core.recipe import InputConfig
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import Picture
from benchmark.input.base import Input, normalisation
from benchmark.input.views import Size, View, eval_view, train_view

PIECE = 16  # images that a worker decodes at a time
AHEAD = 4  # pieces that each worker may have ready or under way


@dataclass(frozen=True)
class Job:
    """Consecutive images of a batch.

    numbers       numbers of the images in their set
    offset        position of the first one in the batch
    batch         number of the batch in its epoch
    seed, epoch   of the augmentation; seed None for evaluation
    scale         of the sides in evaluation
    """

    numbers: tuple[int, ...]
    offset: int
    batch: int
    seed: int | None
    epoch: int
    scale: float


class FileInput(Input):
    """Opens, transforms and normalises images one by one, with one seed per image."""

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.image_set, self.config, self.channels = image_set, config, channels
        self._mean, self._std = (
            values.view(-1).numpy() for values in normalisation(config, channels)
        )
        self._loader: DataLoader | None = None
        self._jobs: list[Job] = []  # of now; the loader reads them at each start

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``."""
        yield from self._tensors(batches[start:], start, seed, epoch)

    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield all images in order; images of native size come one by one."""
        size = 1 if self.config.native_size else batch_size
        images = np.arange(len(self.image_set))
        batches = [images[at : at + size] for at in images[::size]]
        yield from self._tensors(batches, scale=scale)

    def _tensors(
        self,
        batches: Sequence[np.ndarray],
        first: int = 0,
        seed: int | None = None,
        epoch: int = 0,
        scale: float = 1.0,
    ) -> Iterator[torch.Tensor]:
        """Yield float tensors (B, C, H, W) of these batches; ``first`` numbers the first one."""
        self._jobs[:] = [
            Job(tuple(batch[at : at + PIECE].tolist()), at, number, seed, epoch, scale)
            for number, batch in enumerate(batches, first)
            for at in range(0, len(batch), PIECE)
        ]
        pieces = iter(self._loader_of_pieces())
        for batch in batches:
            yield self._batch(len(batch), pieces)

    def _batch(self, size: int, pieces: Iterator[torch.Tensor | str]) -> torch.Tensor:
        """Return the next ``size`` images, uint8 in ``pieces``, as floats (B, C, H, W)."""
        for start in range(0, size, PIECE):
            piece = next(pieces)
            if isinstance(piece, str):
                raise DataError(piece)
            if start == 0:
                height, width = piece.shape[1:3]
                # a row of a batch in memory is a sequence of pixels with their channels
                mean, std = (np.tile(values, width) for values in (self._mean, self._std))
                # numpy asks for large pages: faults of small ones are a third of the cost
                rows = np.empty((size, height, width * self.channels), np.float32)
            for pixels, row in zip(piece.flatten(2).numpy(), rows[start:], strict=False):
                # one image at a time stays in the cache, and leaves the other cores to the workers
                np.divide(pixels, np.float32(255), out=row)
                np.divide(np.subtract(row, mean, out=row), std, out=row)
        batch = torch.from_numpy(rows).view(size, height, width, self.channels)
        return batch.permute(0, 3, 1, 2)

    def _loader_of_pieces(self) -> DataLoader:
        """Return the loader of the jobs; its workers live from one use to the next."""
        if self._loader is None:
            workers = self.config.workers
            self._loader = DataLoader(
                _Views(self.image_set, self.config, self.channels),
                batch_size=None,
                sampler=self._jobs,
                num_workers=workers,
                persistent_workers=workers > 0,
                prefetch_factor=AHEAD if workers else None,
                worker_init_fn=_leave_interrupts_to_parent,
            )
        return self._loader


def _leave_interrupts_to_parent(_worker: int) -> None:
    """Ignore a terminal's signals: the training still needs batches to save its state."""
    ignore_interrupts()


class _Views(Dataset):
    """Decodes the images of one job into uint8 (n, H, W, C).

    A broken image becomes its error message: an exception of a worker would reach the training
    process as the text of a traceback, of a type that the command line cannot recognise.
    """

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.image_set, self.config = image_set, config
        self.mode = "L" if channels == 1 else "RGB"

    def __getitem__(self, job: Job) -> torch.Tensor | str:
        try:
            return torch.stack([self._view(job, offset) for offset in range(len(job.numbers))])
        except DataError as error:
            return str(error)

    def _view(self, job: Job, offset: int) -> torch.Tensor:
        """Return the view of one image, decoded as the recipe wants it."""
        number, opener = job.numbers[offset], cast(Any, self.image_set.opener)
        choice = _Choice(job, job.offset + offset, self.config)
        if self.config.decoding == "reduced" and hasattr(opener, "reduced"):
            image = opener.reduced(number, choice)
        elif self.config.decoding == "stored" and hasattr(opener, "stored"):
            image = opener.stored(number)
            choice(_size(image))
        else:
            image = self.image_set.image(number)
            choice(_size(image))
        return choice.view.of(_in_mode(image, self.mode))


def _size(picture: Picture) -> Size:
    if isinstance(picture, np.ndarray):
        return picture.shape[1], picture.shape[0]
    return picture.size


def _in_mode(picture: Picture, mode: str) -> Picture:
    """Return the picture as RGB or as grey, ``mode`` L; pixels are RGB."""
    if isinstance(picture, np.ndarray):
        return picture if mode == "RGB" else Image.fromarray(picture).convert(mode)
    return picture if picture.mode == mode else picture.convert(mode)


class _Choice:
    """Chooses the view of one image when its size is known, before it is decoded."""

    view: View

    def __init__(self, job: Job, rank: int, config: InputConfig):
        """``rank``: position of the image in its batch."""
        self.job, self.rank, self.config = job, rank, config

    def __call__(self, size: Size) -> int:
        """Return the number by which the sides of the image may be divided."""
        job = self.job
        if job.seed is None:
            self.view = eval_view(size, self.config, job.scale)
        else:
            seed = derive(job.seed, "augmentation", job.epoch, job.batch, self.rank)
            self.view = train_view(size, self.config, np.random.default_rng(seed))
        return self.view.divisor
