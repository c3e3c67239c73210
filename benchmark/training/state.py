"""The state of a run between two steps, and its checkpoint.

The checkpoint is the whole state of a run. It is written atomically, replaces the last checkpoint,
and holds no code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core.errors import RunError
from benchmark.core.files import replacing
from benchmark.core.records import STATE
from benchmark.core.results import EpochRecord, Scores

HASHED_BATCHES = 50
CHECKPOINT = f"{STATE}/checkpoint.pt"


@dataclass
class RunState:
    """Position and history of a run; plain values only, so that it fits a weights-only checkpoint.

    epoch, position     the next step: its epoch (from 0) and its number in the epoch
    step                optimiser steps done
    images_forward      training images that went through the network, each pass counted
    images_backward     training images that gave a gradient
    losses              the loss of every step of the present epoch
    mined               the batches of the present epoch, if they were mined
    records             the finished epochs
    batch_digests       digests of the first batches, for the matched-pairs check
    machines            models of the machines that took part, in order
    package_digests     digests of the packages' versions that took part, in order
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
        """Add one step of the present epoch, with forward ``passes`` of each image."""
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
        """Record the digest of one of the first batches: its indices and its augmented images.

        Images for a GPU are ``normalised`` here as well, so that nothing waits for the GPU.
        """
        if len(self.batch_digests) >= HASHED_BATCHES:
            return
        content = hashlib.sha256(np.ascontiguousarray(indices, dtype=np.int64).tobytes())
        for image in images.split(1):  # one by one they stay in the cache
            content.update(normalised(image).contiguous().numpy().tobytes())
        self.batch_digests.append(content.hexdigest())

    def before_training(self, evaluation: Scores) -> EpochRecord:
        """Record the scores of the initial network as epoch 0; return the record."""
        nothing = dict.fromkeys(("learning_rate", "images_per_second", "loss_ms", "seconds"), 0.0)
        self.records.append(EpochRecord(0, 0, None, **nothing, evaluation=evaluation))
        return self.records[-1]

    def finish_epoch(self, learning_rate: float, evaluation: Scores | None) -> EpochRecord:
        """Close the present epoch; return its record."""
        steps = max(len(self.losses), 1)
        seconds = self.epoch_seconds
        speed = self.epoch_images / seconds if seconds else 0.0
        record = EpochRecord(
            epoch=self.epoch + 1,
            step=self.step,
            loss=sum(self.losses) / steps,
            learning_rate=learning_rate,
            images_per_second=speed,
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
        """Return the state in a checkpoint, with the machine and packages of this state added."""
        values = {item.name: saved[item.name] for item in dataclasses.fields(self)}
        values["records"] = [EpochRecord(**record) for record in values["records"]]
        values["resumed"] += 1
        for name in ("machines", "package_digests"):
            values[name] = [*dict.fromkeys(values[name] + getattr(self, name))]
        return RunState(**values)


# Facts that decide the numbers of a run: a checkpoint of another identity is not continued.
Identity = dict[str, str]  # see Components.identity


def save_checkpoint(folder: Path, identity: Identity, state: dict[str, Any]) -> None:
    """Write ``state``, which has tensors and plain containers.

    Raise RunError if it cannot be written, as on a full disk.
    """
    path = folder / CHECKPOINT
    try:
        with replacing(path) as temporary:
            torch.save({"identity": identity, "state": state}, temporary)
    except (OSError, RuntimeError) as error:
        free = shutil.disk_usage(folder).free
        raise RunError(
            f"the state cannot be saved in {path} ({free:,} bytes are free: {error!s:.100}); make "
            "room, then the same command continues"
        ) from error


def load_checkpoint(folder: Path, identity: Identity) -> tuple[dict[str, Any] | None, str]:
    """Return the state and a message; None and a message if the run cannot continue from it.

    A checkpoint of another identity is not used, nor is a file that torch cannot read: the run
    starts from the beginning. Tensors stay on the CPU, where the optimiser reads its step counts
    without waiting for a GPU.
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
    """Delete the checkpoint of a finished run, and half-written files of a killed attempt.

    The checkpoint's folder is deleted, too, if it is empty.
    """
    path = folder / CHECKPOINT
    half_written = ".*.????????"  # the names that ``replacing`` gives
    for file in (path, *path.parent.glob(half_written), *folder.glob(half_written)):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it may hold other files, or be a link to another disk
        path.parent.rmdir()
