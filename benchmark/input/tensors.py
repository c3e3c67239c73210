"""Inputs turn the numbers of images into tensors: of images in memory, or of files.

The training process decodes files, or its workers do, with the same bits. Workers start once and
share each batch: a worker decodes a piece of it. Pieces reach the training process as uint8 through
shared memory. For a CPU the pieces become floats in the batch itself. For a GPU the pieces stay
uint8, a quarter of the bytes, and become floats there. A thread gathers the next batch during a
step.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from benchmark.core.errors import ConfigError, DataError, Problem
from benchmark.core.interrupts import held_back, obey_parent_alone
from benchmark.core.recipe import InputConfig
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet
from benchmark.input.views import Size, View, eval_view, resize, train_view

PIECE = 16  # images that a worker decodes at a time
AHEAD = 4  # pieces that each worker may have ready or under way
CPU = torch.device("cpu")


class Input(ABC):
    """Turns numbers of images into tensors (B, C, H, W) in channels-last memory.

    Tensors are normalised floats. On their way to a GPU they are uint8, and ``normalised`` makes
    floats of them there.
    """

    @abstractmethod
    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``.

        An image depends only on the seed, the epoch, the number of the batch and its position
        there.
        """

    @abstractmethod
    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield batches of all images in order, without augmentation; ``scale``: of their sides."""

    def normalised(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images of a batch as normalised floats, on the device where they are."""
        return images


def one_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield ``items``, none of which is None; a thread makes the next item while one is used.

    An error of making an item is raised here. The thread ends with this iterator.
    """
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


def normalisation(config: InputConfig, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation as (1, C, 1, 1).

    One value holds for all channels; grey takes the first of several.
    """
    constants = []
    for values in (config.mean, config.std):
        if len(values) == 1:
            values = values * channels
        constants.append(values[:channels])
    mean, std = torch.tensor(constants, dtype=torch.float32).view(2, 1, channels, 1, 1)
    return mean, std


class PixelInput(Input):
    """Rotates, shifts and zooms batches of uint8 images in memory, and adds noise."""

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.config = config
        self.channels = channels
        pixels = np.asarray(image_set.pixels)
        if pixels.shape[-1] == 1:
            pixels = pixels.repeat(channels, axis=-1)
        elif pixels.shape[-1] != channels:  # the ITU-R 601 luma, as PIL computes it
            weights = np.array([0.299, 0.587, 0.114], dtype=np.float32)
            luma = np.rint(pixels.astype(np.float32) @ weights)
            pixels = luma[..., None].astype(np.uint8)
        self._pixels = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        self._mean, self._std = normalisation(config, channels)
        # the homogeneous pixel centres (3, H * W) between -1 and 1: x, y, 1
        height, width = self._pixels.shape[-2:]
        grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, height, width], align_corners=False)
        ones = torch.ones(height * width, 1)
        self._coordinates = torch.cat([grid.view(-1, 2), ones], 1).T.contiguous()

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``."""
        generator = torch.Generator()
        for number in range(start, len(batches)):
            pixels = self._pixels.index_select(0, torch.from_numpy(batches[number]))
            images = pixels.float().div_(255.0)
            if self.config.augmentation == "affine_noise":
                generator.manual_seed(derive(seed, "augmentation", epoch, number))
                images = self._augment(images, generator)
            yield self._normalise(images)

    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield batches of all images in order, not augmented; ``scale``: of their sides."""
        height, width = (max(1, int(0.5 + scale * side)) for side in self._pixels.shape[-2:])
        for at in range(0, len(self._pixels), batch_size):
            rows = self._pixels[at : at + batch_size].permute(0, 2, 3, 1)
            images = resize(rows, (width, height)).permute(0, 3, 1, 2)
            yield self._normalise(images.float().div_(255.0))

    def _normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Normalise in place: the images are copies already."""
        return images.sub_(self._mean).div_(self._std).contiguous(memory_format=torch.channels_last)

    def _augment(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Apply one random affine map per image, then noise; both come from ``generator``."""
        config = self.config
        uniform = torch.rand(4, len(images), generator=generator) * 2 - 1
        angle = uniform[0] * math.radians(config.degrees)
        low, high = config.scale
        zoom = 1 / (low + (high - low) * (uniform[1] + 1) / 2)
        shift = uniform[2:] * 2 * config.translate  # grid coordinates span 2 per side
        cosine = torch.cos(angle) * zoom
        sine = torch.sin(angle) * zoom
        rows = [torch.stack([cosine, -sine, shift[0]], 1), torch.stack([sine, cosine, shift[1]], 1)]
        # F.affine_grid gives the same bits by matrices three wide, several times slower
        grid = torch.stack(rows, 1).view(-1, 3) @ self._coordinates
        grid = grid.view(-1, 2, *images.shape[-2:]).permute(0, 2, 3, 1)
        moved = F.grid_sample(images, grid, align_corners=False)
        if config.noise:
            noise = torch.randn(moved.shape, generator=generator)
            moved = moved.add_(noise, alpha=config.noise)
        return moved


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

    def __init__(
        self, image_set: ImageSet, config: InputConfig, channels: int, device: torch.device = CPU
    ):
        self.image_set = image_set
        self.config = config
        self.channels = channels
        self._device = device
        constants = [torch.tensor(255.0), *normalisation(config, channels)]
        self._mean, self._std = (values.view(-1).numpy() for values in constants[1:])
        self._constants = {}
        for target in (CPU, device):
            self._constants[target.type] = [values.to(target) for values in constants]
        self._jobs: list[Job] = []  # of now; the loader reads them at each start
        self._loader = DataLoader(  # its workers live from one use to the next
            _Views(image_set, config, channels),
            batch_size=None,
            sampler=self._jobs,
            num_workers=config.workers,
            persistent_workers=config.workers > 0,
            prefetch_factor=AHEAD if config.workers else None,
            worker_init_fn=obey_parent_alone,
        )

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``, as ``PixelInput`` does."""
        yield from self._tensors(batches[start:], start, seed, epoch)

    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield all images in order; images of native size come one by one."""
        size = 1 if self.config.native_size else batch_size
        images = np.arange(len(self.image_set))
        batches = [images[at : at + size] for at in images[::size]]
        yield from self._tensors(batches, scale=scale)

    def normalised(self, images: torch.Tensor) -> torch.Tensor:
        """Return images of a batch as normalised floats: on a GPU the bits of the CPU."""
        if images.dtype != torch.uint8:
            return images
        # CUDA divides by a tensor; by a number it multiplies with the reciprocal
        white, mean, std = self._constants[images.device.type]
        return images.float().div_(white).sub_(mean).div_(std)

    def _tensors(
        self,
        batches: Sequence[np.ndarray],
        first: int = 0,
        seed: int | None = None,
        epoch: int = 0,
        scale: float = 1.0,
    ) -> Iterator[torch.Tensor]:
        """Yield tensors (B, C, H, W) of these batches; ``first`` numbers the first one."""
        self._jobs[:] = [
            Job(tuple(batch[at : at + PIECE].tolist()), at, number, seed, epoch, scale)
            for number, batch in enumerate(batches, first)
            for at in range(0, len(batch), PIECE)
        ]
        with held_back():
            pieces = map(_decoded, iter(self._loader))
        if self._device.type == "cpu":
            yield from self._floats(batches, pieces)
        else:
            yield from one_ahead(self._bytes(batches, pieces))

    def _bytes(
        self, batches: Sequence[np.ndarray], pieces: Iterator[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yield uint8 tensors in pinned memory, which a GPU reads while this process goes on.

        When the copies to the GPU are done, torch gives that memory to a later batch.
        """
        pinned = self._device.type == "cuda"
        for batch in batches:
            for start in range(0, len(batch), PIECE):
                piece = next(pieces)
                if start == 0:
                    shape = (len(batch), *piece.shape[1:])
                    pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=pinned)
                pixels[start : start + len(piece)] = piece
            yield pixels.permute(0, 3, 1, 2)

    def _floats(
        self, batches: Sequence[np.ndarray], pieces: Iterator[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        """Yield normalised float tensors."""
        for batch in batches:
            for start in range(0, len(batch), PIECE):
                piece = next(pieces)
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


def _decoded(piece: torch.Tensor | str) -> torch.Tensor:
    """Return a piece; raise DataError where it is the message of a broken image."""
    if isinstance(piece, str):
        raise DataError(piece)
    return piece


class _Views(Dataset):
    """Decodes the images of one job into uint8 (n, H, W, C).

    A broken image becomes its error message. An exception of a worker would reach the training
    process as the text of a traceback, and the command line could not recognise its type.
    """

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.image_set = image_set
        self.config = config
        self.mode = "L" if channels == 1 else "RGB"

    def __getitem__(self, job: Job) -> torch.Tensor | str:
        try:
            return torch.stack([self._view(job, offset) for offset in range(len(job.numbers))])
        except DataError as error:
            return str(error)

    def _view(self, job: Job, offset: int) -> torch.Tensor:
        """Return the view of one image.

        The size of the image decides its view, and the recipe says how the image is decoded.
        """
        view: View

        def divisor(size: Size) -> int:
            nonlocal view
            if job.seed is None:
                view = eval_view(size, self.config, job.scale)
            else:
                position = job.epoch, job.batch, job.offset + offset
                generator = np.random.default_rng(derive(job.seed, "augmentation", *position))
                view = train_view(size, self.config, generator)
            return view.divisor

        number = job.numbers[offset]
        opener: Any = self.image_set.opener
        decoding = self.config.decoding
        if decoding == "reduced" and hasattr(opener, decoding):
            picture = opener.reduced(number, divisor)
        else:
            picture = getattr(opener, decoding, self.image_set.image)(number)
            divisor(picture.shape[1::-1] if isinstance(picture, np.ndarray) else picture.size)
        if isinstance(picture, np.ndarray):  # RGB
            picture = picture if self.mode == "RGB" else Image.fromarray(picture).convert("L")
        elif picture.mode != self.mode:
            picture = picture.convert(self.mode)
        return view.of(picture)


def create_input(
    image_set: ImageSet, config: InputConfig, channels: int, device: torch.device = CPU
) -> Input:
    """Return the input of ``image_set`` for a device; raise ConfigError if they do not fit.

    Images in memory that have the right size are transformed in batches. All others are decoded and
    transformed one by one. ``check_input`` has found no problem in ``config``.
    """
    side = config.image_size
    fits = image_set.pixels is not None and image_set.pixels.shape[1:3] == (side, side)
    if config.augmentation == "affine_noise" and not fits:
        shape = "files" if image_set.pixels is None else f"{image_set.pixels.shape[1:3]} pixels"
        message = (
            f"'affine_noise' works on images in memory of image_size {side}, and this dataset has "
            f"{shape}; use 'crop_flip' or 'none'"
        )
        raise ConfigError("recipe section input", [Problem(message, "augmentation")])
    unresized = config.augmentation == "none" and config.resize in (None, side)
    if fits and (config.augmentation == "affine_noise" or unresized):
        return PixelInput(image_set, config, channels)
    return FileInput(image_set, config, channels, device)
