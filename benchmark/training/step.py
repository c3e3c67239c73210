"""One optimisation step: forward, loss on the embeddings, backward, update.

With micro-batches, a batch of any size needs the memory of a few images (Revaud et al., ICCV 2019,
section 3.3; Cakir et al., CVPR 2019, section 4.1). First embed all images without a graph, and
differentiate the loss with respect to the embeddings. Then embed each micro-batch again, and send
its gradient into the network. This costs a second forward pass.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmark.core.recipe import MemoryConfig, TrainingConfig
from benchmark.core.seeding import derive
from benchmark.losses.base import Loss
from benchmark.training.numerics import autocast, tf32


class DivergedError(Exception):
    """The loss or an embedding is not finite. The run then has a result and has not failed."""


@contextlib.contextmanager
def diverging_with(embeddings: torch.Tensor) -> Iterator[None]:
    """Raise DivergedError for an error in the block if the embeddings (N, D) are not finite.

    The embeddings are read only after an error, because reading waits for the device.
    """
    try:
        yield
    except Exception as error:
        with contextlib.suppress(RuntimeError):  # the device may not answer any more
            if not embeddings.isfinite().all():
                raise DivergedError("embeddings became non-finite") from error
        raise


STATEFUL = ("model", "loss", "optimizer", "scaler", "memory")
NO_NUMBERS = np.empty(0, np.int64)


@dataclass
class Stepper:
    """Takes optimisation steps; random numbers in a step are seeded by the step's number alone.

    The loss is first differentiated with respect to detached embeddings, then this gradient is
    passed into the network. The gradient is the same as in one backward pass, and the time of the
    loss can be measured. Batches above ``config.micro_batch`` go through the network in parts.
    """

    model: nn.Module
    loss: Loss
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    config: TrainingConfig
    device: torch.device
    seed: int
    memory: Memory | None = None
    normalised: Callable[[torch.Tensor], torch.Tensor] = lambda images: images  # of the input
    recorder: Any = None  # of a trace; see ``benchmark.replay``
    _pending: list[torch.Tensor] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._generator = torch.Generator(device=self.device)
        # torch.manual_seed formats a traceback for each kind of device that is not there
        is_cpu = self.device.type == "cpu"
        self._seed = torch.default_generator.manual_seed if is_cpu else torch.manual_seed
        self.stopwatch = Stopwatch(self.device)

    def __call__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        step: int,
        image_numbers: np.ndarray = NO_NUMBERS,
        reads: bool = True,
    ) -> None:
        """Take step number ``step`` on images (B, C, H, W) and labels (B,), both on the CPU.

        image_numbers  numbers of the training images (B,), for the memory
        reads          whether the loss reads the memory. A memory that is not written first is
                       written only then.

        ``drain`` returns the loss.
        """
        seed = derive(self.seed, "step", step)
        self._seed(seed)
        self._generator.manual_seed(derive(self.seed, "loss", step))
        self._images = images
        labels = self._for_loss(labels)
        self.optimizer.zero_grad(set_to_none=True)
        if size := self._images_at_once(len(images)):
            loss = self._step_by_groups(images, labels, size)
        else:
            embeddings, backward = self._forward(images, seed)
            loss, gradient = self._differentiate(embeddings, labels, image_numbers, reads)
            backward(gradient)
        self._update()
        self._pending.append(loss)

    def _update(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _embed(self, images: torch.Tensor) -> torch.Tensor:
        images = self.normalised(images.to(self.device, non_blocking=True))
        # only the network rounds; the loss and its scores do not
        with autocast(self.config, self.device), tf32(self.config):
            return self.model(images)

    def _send_back(self, embeddings: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add the gradient of the network, given the gradient of its embeddings (B, D)."""
        with tf32(self.config):
            embeddings.backward(gradient)

    def _forward(
        self, images: torch.Tensor, seed: int
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """Return embeddings (B, D), and a function that sends their gradient into the network.

        Micro-batches are embedded without a graph, and again by the function. With ``staged``, the
        first pass is as in a test, and each micro-batch updates the network.
        """
        size = self.config.micro_batch
        staged = self.config.staged
        if size is not None and self.passes(len(images)) > 1:
            micro_batches = [slice(start, start + size) for start in range(0, len(images), size)]

            def embed(rows: slice) -> torch.Tensor:
                # both passes draw the same random numbers, for dropout for example
                self._seed(derive(seed, "part", rows.start))
                return self._embed(images[rows])

            def backward(gradient: torch.Tensor) -> None:
                for rows in micro_batches:
                    if staged and rows.start:
                        self._update()
                        self.optimizer.zero_grad(set_to_none=True)
                    self._send_back(embed(rows), gradient[rows])

            self.model.train(not staged)
            with torch.no_grad():
                embeddings = torch.cat([embed(rows) for rows in micro_batches])
            self.model.train()
            return embeddings, backward
        embeddings = self._embed(images)
        return embeddings, partial(self._send_back, embeddings)

    def _differentiate(
        self,
        embeddings: torch.Tensor,
        labels: torch.Tensor,
        image_numbers: np.ndarray,
        reads: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss, and the gradient (B, D) of the scaled loss at the embeddings.

        The gradient of the loss's own parameters is added to these. The batch is written to the
        memory before the loss reads it, or after.
        """
        leaves = embeddings.detach().requires_grad_()
        memory = self.memory
        pool = None
        if memory is not None and memory.write_first:
            memory.store(leaves, image_numbers)
        with diverging_with(leaves), self.stopwatch.running():
            with autocast(self.config, self.device):
                if memory is not None and reads:
                    others, other_labels = memory.references(image_numbers)
                    pool = others, self._for_loss(other_labels)
                    value = self.loss.with_memory(leaves, labels, *pool, generator=self._generator)
                else:
                    value = self.loss(leaves, labels, generator=self._generator)
            if self.recorder is not None:
                self.recorder.step(
                    inputs=self.normalised(self._images.to(self.device)),
                    labels=labels,
                    embeddings=leaves,
                    loss=value,
                    numbers=image_numbers,
                    memory=pool,
                )
            self.scaler.scale(value).backward()
        if memory is not None and reads and not memory.write_first:
            memory.store(leaves, image_numbers)
        assert leaves.grad is not None  # given by backward
        return value.detach(), leaves.grad

    def passes(self, images: int) -> int:
        """Return the forward passes of each image of a batch: 2 in micro-batches, otherwise 1."""
        size = self.config.micro_batch
        if size is None or size >= images or self._images_at_once(images):
            return 1
        return 2

    def _images_at_once(self, images: int) -> int:
        """Return the number of images of a part, in whole groups of the loss.

        0 if the loss has no groups, or the batch goes through in one piece.
        """
        size = self.config.micro_batch
        group = getattr(self.loss, "group", None)
        needs_batch = self.config.staged or self.memory is not None
        if needs_batch or not group or size is None or size >= images:
            return 0
        return max(size // group, 1) * group

    def _step_by_groups(
        self, images: torch.Tensor, labels: torch.Tensor, size: int
    ) -> torch.Tensor:
        """Add the gradient of a batch part by part; return its loss, the mean over its groups."""
        total = torch.zeros((), device=self.device)
        for start in range(0, len(images), size):
            rows = slice(start, start + size)
            embeddings = self._embed(images[rows])
            share = len(images[rows]) / len(images)
            loss, gradient = self._differentiate(embeddings, labels[rows], NO_NUMBERS, False)
            self._send_back(embeddings, share * gradient)
            total = total + share * loss
        return total

    def _for_loss(self, labels: torch.Tensor) -> torch.Tensor:
        """Return labels on the CPU if the loss wants them there, otherwise on the device."""
        # the loss of a plugin may be any module, without this attribute
        if getattr(self.loss, "labels_on_cpu", False):
            return labels
        return labels.to(self.device, non_blocking=True)

    def drain(self) -> list[float]:
        """Return the losses of the steps since the last call, in one transfer."""
        if not self._pending:
            return []
        values = torch.stack(self._pending).tolist()
        self._pending.clear()
        return values

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs, apart from its position."""
        state = {}
        for name in STATEFUL:
            component = getattr(self, name)
            state[name] = None if component is None else component.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
        for name in STATEFUL:
            component = getattr(self, name)
            if component is not None:
                component.load_state_dict(state[name])


class Stopwatch:
    """Sums the seconds inside ``with stopwatch.running()``: wall clock on a CPU, events on CUDA."""

    def __init__(self, device: torch.device):
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Time the block, without making the device wait for the clock."""
        if self._cuda:
            start = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            start.record()
            yield
            end.record()
            self._events.append((start, end))
        else:
            started = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - started

    def drain(self) -> float:
        """Return the seconds since the last call; on CUDA this waits for the device once."""
        if self._events:
            torch.cuda.synchronize()
            self._seconds += sum(start.elapsed_time(end) for start, end in self._events) / 1000.0
            self._events.clear()
        seconds = self._seconds
        self._seconds = 0.0
        return seconds


class Memory:
    """Cross-batch memory (XBM): detached embeddings (size, D) of training images, on the device.

    Wang et al., "Cross-Batch Memory for Embedding Learning", CVPR 2020. The network changes little
    in a few steps, so that its earlier embeddings are close to present ones, and cost nothing.

    With key "image", each image has one slot, which its next embedding overwrites. An image without
    a slot takes the slot that was written longest ago. With key "fifo", every embedding takes the
    slot that was written longest ago, so an image may have several slots.
    """

    def __init__(
        self,
        config: MemoryConfig,
        labels: torch.Tensor,
        width: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ):
        """Make an empty memory for images with ``labels`` (N,) and embeddings of ``width``."""
        size = config.size
        self._by_image = config.key == "image"
        self.write_first = config.write_first
        if size is None or size == -1:
            size = len(labels)
        if self._by_image:
            size = min(size, len(labels))
        self._labels = labels
        self._embeddings = torch.zeros(size, width, device=device, dtype=dtype)
        self._images = np.full(size, -1)  # -1: empty
        self._written = np.arange(-size, 0)  # when, in embeddings stored since the beginning

    def __len__(self) -> int:
        """Return the number of embeddings remembered."""
        return int(np.count_nonzero(self._images >= 0))

    def references(self, images: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embeddings (M, D), and labels (M,) on the CPU, that a step on ``images`` reads.

        If the batch was written first, these are all. Otherwise the embeddings of ``images`` (B,)
        are left out: the batch has its own embeddings, and an old copy of a query is not a
        reference.
        """
        if self.write_first:
            images = images[:0]
        slots = np.flatnonzero((self._images >= 0) & ~np.isin(self._images, images))
        rows = torch.from_numpy(slots).to(self._embeddings.device, non_blocking=True)
        labels = self._labels[torch.from_numpy(self._images[slots])]
        return self._embeddings.index_select(0, rows), labels

    def store(self, embeddings: torch.Tensor, images: np.ndarray) -> None:
        """Remember embeddings (B, D) of training images (B,), without their graph."""
        chosen = np.arange(len(images))
        if self._by_image:
            # of an image that was drawn twice, the later embedding is stored
            chosen = np.sort(len(images) - 1 - np.unique(images[::-1], return_index=True)[1])
        chosen = chosen[-len(self._images) :]
        images = images[chosen]
        slots = self._slots_of(images) if self._by_image else _oldest(self._written, len(images))
        device = self._embeddings.device
        rows = torch.from_numpy(chosen).to(device, non_blocking=True)
        targets = torch.from_numpy(slots).to(device, non_blocking=True)
        values = embeddings.detach().index_select(0, rows).to(self._embeddings.dtype)
        self._embeddings.index_copy_(0, targets, values)
        self._images[slots] = images
        self._written[slots] = self._written.max() + 1 + np.arange(len(slots))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return everything that a resumed run needs, as tensors."""
        images = torch.from_numpy(self._images)
        written = torch.from_numpy(self._written)
        return {"embeddings": self._embeddings, "images": images, "written": written}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
        self._embeddings.copy_(state["embeddings"])
        self._images[:] = state["images"].numpy()
        self._written[:] = state["written"].numpy()

    def _slots_of(self, images: np.ndarray) -> np.ndarray:
        """Return the slots of distinct images: the slot of the image, or else the oldest slots."""
        # the last entry is for image -1 of empty slots
        slot_of = np.full(len(self._labels) + 1, -1)
        slot_of[self._images] = np.arange(len(self._images))
        slots = slot_of[images]
        new = slots < 0
        written = self._written.copy()
        written[slots[~new]] = np.iinfo(written.dtype).max
        slots[new] = _oldest(written, int(new.sum()))
        return slots


def _oldest(written: np.ndarray, count: int) -> np.ndarray:
    """Return the ``count`` slots that were written longest ago, oldest first."""
    oldest = np.arange(len(written))
    if 0 < count < len(written):
        oldest = np.argpartition(written, count - 1)[:count]
    return oldest[np.argsort(written[oldest])][:count]
