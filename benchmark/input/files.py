"""Images from files: decoded by the training process or by workers, with the same bits either way.

Workers start once and share the work of each batch: they decode pieces of it, which reach this
process as uint8 through shared memory and become floats directly in the batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from benchmark.core.errors import DataError
from benchmark.core.interrupts import ignore_interrupts
from benchmark.core.recipe import InputConfig
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet
from benchmark.input.create import Input, normalisation
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
        self._mean, self._std = (v.view(-1).numpy() for v in normalisation(config, channels))
        self._jobs: list[Job] = []  # of now; the loader reads them at each start
        self._loader = DataLoader(  # its workers live from one use to the next
            _Views(image_set, config, channels),
            batch_size=None,
            sampler=self._jobs,
            num_workers=config.workers,
            persistent_workers=config.workers > 0,
            prefetch_factor=AHEAD if config.workers else None,
            worker_init_fn=_leave_interrupts_to_parent,
        )

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
        pieces = iter(self._loader)
        for batch in batches:
            for start in range(0, len(batch), PIECE):
                piece = next(pieces)
                if isinstance(piece, str):
                    raise DataError(piece)
                if start == 0:
                    height, width = piece.shape[1:3]
                    # a row of a batch in memory is a sequence of pixels with their channels
                    mean, std = (np.tile(values, width) for values in (self._mean, self._std))
                    # numpy asks for large pages: faults of small ones are a third of the cost
                    rows = np.empty((len(batch), height, width * self.channels), np.float32)
                for pixels, row in zip(piece.flatten(2).numpy(), rows[start:], strict=False):
                    # one image at a time stays in the cache, and leaves other cores to workers
                    np.divide(pixels, np.float32(255), out=row)
                    np.divide(np.subtract(row, mean, out=row), std, out=row)
            tensor = torch.from_numpy(rows).view(len(batch), height, width, self.channels)
            yield tensor.permute(0, 3, 1, 2)


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
        """Return the view of one image, chosen by its size and decoded as the recipe wants it."""
        view: View

        def divisor(size: Size) -> int:
            nonlocal view
            if job.seed is None:
                view = eval_view(size, self.config, job.scale)
            else:
                place = job.epoch, job.batch, job.offset + offset
                generator = np.random.default_rng(derive(job.seed, "augmentation", *place))
                view = train_view(size, self.config, generator)
            return view.divisor

        number, opener = job.numbers[offset], self.image_set.opener
        open_part: Any = getattr(opener, self.config.decoding, self.image_set.image)
        if self.config.decoding == "reduced" and open_part != self.image_set.image:
            picture = open_part(number, divisor)
        else:
            picture = open_part(number)
            divisor(picture.shape[1::-1] if isinstance(picture, np.ndarray) else picture.size)
        if isinstance(picture, np.ndarray):  # RGB
            picture = picture if self.mode == "RGB" else Image.fromarray(picture).convert("L")
        elif picture.mode != self.mode:
            picture = picture.convert(self.mode)
        return view.of(picture)
