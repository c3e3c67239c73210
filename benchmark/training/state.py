"""What a run knows about itself between two steps: position, running sums, finished epochs."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmark.core.results import BatchStream, EpochRecord, Scores, Timing

HASHED_BATCHES = 50


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

    def continuing(self, before: RunState) -> RunState:
        """Return the state of an earlier attempt, with machine and packages of this one added."""
        machines = dict.fromkeys([*before.machines, *self.machines])
        packages = dict.fromkeys([*before.package_digests, *self.package_digests])
        return dataclasses.replace(
            before,
            machines=list(machines),
            package_digests=list(packages),
            resumed=before.resumed + 1,
        )

    def count_step(self, images: int, seconds: float, passes: int) -> None:
        """Add one step of the epoch under way, with forward ``passes`` of each image."""
        self.images_forward += passes * images
        self.images_backward += images
        self.step += 1
        self.position += 1
        self.epoch_images += images
        self.epoch_seconds += seconds

    def count_mining(self, batches: list[np.ndarray], images: int, seconds: float) -> None:
        """Keep the batches of the epoch under way, for which so many images were embedded."""
        self.mined = [batch.tolist() for batch in batches]
        self.images_forward += images
        self.epoch_seconds += seconds

    @property
    def hashes_batch(self) -> bool:
        """Whether the next batch is one of the first, whose digests are noted."""
        return len(self.batch_digests) < HASHED_BATCHES

    def hash_batch(self, indices: np.ndarray, images: torch.Tensor) -> None:
        """Note the digest of a batch: which images, in which augmented form."""
        content = hashlib.sha256(np.ascontiguousarray(indices, dtype=np.int64).tobytes())
        content.update(images.detach().cpu().contiguous().numpy().tobytes())
        self.batch_digests.append(content.hexdigest())

    def batch_stream(self) -> BatchStream:
        """Return the digest, equal for every run with the same data, seed and batch size."""
        joined = "".join(self.batch_digests).encode()
        return BatchStream(len(self.batch_digests), hashlib.sha256(joined).hexdigest())

    def before_training(self, evaluation: Scores) -> EpochRecord:
        """Note the scores of the network as it starts, as epoch 0; return the record."""
        record = EpochRecord(
            epoch=0,
            step=0,
            loss=None,
            learning_rate=0.0,
            images_per_second=0.0,
            loss_ms=0.0,
            seconds=0.0,
            evaluation=evaluation,
        )
        self.records.append(record)
        return record

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
        self.epoch, self.position, self.losses, self.mined = self.epoch + 1, 0, [], []
        self.epoch_seconds = self.epoch_loss_seconds = 0.0
        self.epoch_images = 0
        return record

    def timing(self, startup: float, total: float) -> Timing:
        """Return what the run took, given the seconds of start-up and of all attempts."""
        images = sum(record.images_per_second * record.seconds for record in self.records)
        seconds = sum(record.seconds for record in self.records)
        return Timing(
            startup_seconds=startup,
            train_seconds=self.train_seconds,
            eval_seconds=self.eval_seconds,
            total_seconds=startup + total,
            images_per_second=images / seconds if seconds else 0.0,
            loss_ms=sum(record.loss_ms for record in self.records) / max(len(self.records), 1),
            resumed=self.resumed,
            updates=self.step,
            images_forward=self.images_forward,
            images_backward=self.images_backward,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plain values for a checkpoint."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunState:
        """Return the state in a checkpoint's content, which has other entries as well."""
        own = {item.name: values[item.name] for item in dataclasses.fields(cls)}
        return cls(**{**own, "records": [EpochRecord(**record) for record in own["records"]]})
