"""What a run knows about itself between two steps, and its checkpoint.

The checkpoint is rolling: the whole state of a run, written atomically, read without code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core.files import replacing
from benchmark.core.records import STATE
from benchmark.core.results import EpochRecord, Scores

HASHED_BATCHES = 50
CHECKPOINT = f"{STATE}/checkpoint.pt"


@dataclass
class RunState:
    """Position and history of a run; plain values only, so that it fits a weights-only checkpoint.

    epoch, position     the next step: epoch (from 0) and its place in the epoch
    step                optimiser steps done
    images_forward      training images that went through the network, each pass counted
    images_backward     training images that gave a gradient
    losses              the loss of every step of the epoch under way
    mined               the batches of the epoch under way, where they were mined
    records             the finished epochs
    batch_digests       digests of the first batches, for the matched-pairs check
    machines            models of the machines that took part, first one first
    package_digests     digests of the packages' versions that took part, first one first
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    mined: list[list[int]] = field(default_factory=list)
    records: list[EpochRecord] = field(default_factory=list)
    batch_digests: list[str] = field(default_factory=list)
    epoch_seconds: float = 0.0
    epoch_loss_seconds: float = 0.0
    epoch_images: int = 0
    images_forward: int = 0
    images_backward: int = 0
    train_seconds: float = 0.0
    eval_seconds: float = 0.0
    total_seconds: float = 0.0
    resumed: int = 0
    machines: list[str] = field(default_factory=list)
    package_digests: list[str] = field(default_factory=list)

    def count_step(self, images: int, seconds: float, passes: int) -> None:
        """Add one step of the epoch under way, with forward ``passes`` of each image."""
        self.images_forward += passes * images
        self.images_backward += images
        self.step += 1
        self.position += 1
        self.epoch_images += images
        self.epoch_seconds += seconds

    def hash_batch(
        self,
        indices: np.ndarray,
        images: torch.Tensor,
        normalised: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Note the digest of one of the first batches: which images, in which augmented form.

        Images on their way to a GPU are ``normalised`` here as well, so that nothing waits for it.
        """
        if len(self.batch_digests) >= HASHED_BATCHES:
            return
        content = hashlib.sha256(np.ascontiguousarray(indices, dtype=np.int64).tobytes())
        for image in images.split(1):  # one by one they stay in the cache
            content.update(normalised(image).contiguous().numpy().tobytes())
        self.batch_digests.append(content.hexdigest())

    def before_training(self, evaluation: Scores) -> EpochRecord:
        """Note the scores of the network as it starts, as epoch 0; return the record."""
        nothing = dict.fromkeys(("learning_rate", "images_per_second", "loss_ms", "seconds"), 0.0)
        self.records.append(EpochRecord(0, 0, None, **nothing, evaluation=evaluation))
        return self.records[-1]

    def finish_epoch(self, learning_rate: float, evaluation: Scores | None) -> EpochRecord:
        """Close the epoch under way; return its record."""
        steps = max(len(self.losses), 1)
        seconds = self.epoch_seconds
        record = EpochRecord(
            epoch=self.epoch + 1,
            step=self.step,
            loss=sum(self.losses) / steps,
            learning_rate=learning_rate,
            images_per_second=self.epoch_images / seconds if seconds else 0.0,
            loss_ms=1000.0 * self.epoch_loss_seconds / steps,
            seconds=seconds,
            evaluation=evaluation,
        )
        self.records.append(record)
        self.train_seconds += seconds
        self.epoch = self.epoch + 1
        self.position = 0
        self.losses = []
        self.mined = []
        self.epoch_seconds = 0.0
        self.epoch_loss_seconds = 0.0
        self.epoch_images = 0
        return record

    def continued(self, saved: dict[str, Any]) -> RunState:
        """Return the state in a checkpoint's content, with machine and packages of this one."""
        own = {item.name: saved[item.name] for item in dataclasses.fields(self)}
        own["records"] = [EpochRecord(**record) for record in own["records"]]
        for name in ("machines", "package_digests"):
            own[name] = [*dict.fromkeys(own[name] + getattr(self, name))]
        return RunState(**{**own, "resumed": own["resumed"] + 1})


# What decides the numbers of a run: a checkpoint of another identity is not continued.
Identity = dict[str, str]  # see Components.identity


def save_checkpoint(folder: Path, identity: Identity, state: dict[str, Any]) -> None:
    """Write ``state``: tensors and plain containers."""
    with replacing(folder / CHECKPOINT) as temporary:
        torch.save({"identity": identity, "state": state}, temporary)


def load_checkpoint(folder: Path, identity: Identity) -> tuple[dict[str, Any] | None, str]:
    """Return the state and a message; None when there is nothing that this run can continue from.

    A checkpoint of another identity, or a file that torch cannot read, is left aside with a
    message: starting over is always right, continuing from it never is. Tensors stay on the CPU:
    the optimiser keeps its step counts where they are, and reads them there without waiting for a
    GPU.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None, ""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (EOFError, RuntimeError, pickle.UnpicklingError):
        return None, f"{CHECKPOINT} cannot be read; starting from the beginning"
    for key, value in identity.items():
        if (saved := content["identity"][key]) != value:
            reason = f"has {key.replace('_', ' ')} {saved}, not {value}"
            return None, f"{CHECKPOINT} {reason}; starting from the beginning"
    state = content["state"]
    return state, f"continuing at epoch {state['epoch'] + 1}, step {state['position']}"


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a finished run, and what a killed attempt left half-written.

    The checkpoint's folder goes, too, when it is left empty.
    """
    path = folder / CHECKPOINT
    half_written = ".*.????????"  # the names that ``replacing`` gives
    for each in (path, *path.parent.glob(half_written), *folder.glob(half_written)):
        each.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it may hold other files, or be a link to another disk
        path.parent.rmdir()
