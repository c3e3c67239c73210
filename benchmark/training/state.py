"""What a run knows about itself between two steps: position, running sums, finished epochs."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmark.core.results import BatchStream, EpochRecord, Scores

HASHED_BATCHES = 50


@dataclass
class RunState:
    """Position and history of a run; plain values only, so that it fits a weights-only checkpoint.

    epoch, position     the next step: epoch (from 0) and its place in the epoch
    step                optimiser steps done
    losses              the loss of every step of the epoch under way
    records             the finished epochs
    batch_digests       digests of the first batches, for the matched-pairs check
    machines            models of the machines that took part, first one first
    package_digests     digests of the versions of packages that it was computed with, first ones first
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    records: list[EpochRecord] = field(default_factory=list)
    batch_digests: list[str] = field(default_factory=list)
    epoch_seconds: float = 0.0
    epoch_loss_seconds: float = 0.0
    epoch_images: int = 0
    train_seconds: float = 0.0
    eval_seconds: float = 0.0
    total_seconds: float = 0.0
    resumed: int = 0
    machines: list[str] = field(default_factory=list)
    package_digests: list[str] = field(default_factory=list)

    def continuing(self, before: RunState) -> RunState:
        """Returns the state ``before`` of an earlier attempt, with the machine and packages of this one added."""
        for name in ("machines", "package_digests"):
            known = getattr(before, name)
            known += [value for value in getattr(self, name) if value not in known]
        before.resumed += 1
        return before

    def hash_batch(self, indices: np.ndarray, images: torch.Tensor) -> None:
        """Notes the digest of one of the first batches: which images, in which augmented form."""
        if len(self.batch_digests) < HASHED_BATCHES:
            content = hashlib.sha256(np.ascontiguousarray(indices, dtype=np.int64).tobytes())
            content.update(images.detach().cpu().contiguous().numpy().tobytes())
            self.batch_digests.append(content.hexdigest())

    def batch_stream(self) -> BatchStream:
        """Return the digest that equals that of every run with the same data, seed and batch size."""
        joined = "".join(self.batch_digests).encode()
        return BatchStream(len(self.batch_digests), hashlib.sha256(joined).hexdigest())

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
        self.epoch, self.position, self.losses = self.epoch + 1, 0, []
        self.epoch_seconds = self.epoch_loss_seconds = 0.0
        self.epoch_images = 0
        return record

    def as_dict(self) -> dict[str, Any]:
        """Return the plain values for a checkpoint."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunState:
        """Return the state whose plain values these are."""
        records = [EpochRecord(**record) for record in values["records"]]
        return cls(**{**values, "records": records})
