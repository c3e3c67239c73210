"""The records that a run leaves: result, lines of metrics, and what computed them at what cost.

``result.json`` is the same bits for the same specification and code; ``provenance.json`` holds what
may differ between equal results. Both are validated where they are read: a damaged file, or one of
another shape, is a RunError that names the path and the key.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from benchmark.core.files import write_json, write_text
from benchmark.core.paths import MAX_RECORD, read_regular
from benchmark.core.record_files import Checked, parse_record, read_record, unreadable

MOST = 1 + 1e-9  # of a score: a mean of values up to 1 may be a rounding error above 1
Score = Annotated[float, Checked("Field", ge=0, le=MOST)]
Scores = dict[str, dict[str, Score]]  # split -> metric -> value
Count = Annotated[int, Checked("Field", ge=0, lt=2**63)]
Amount = Annotated[float, Checked("Field", ge=0, lt=1e15)]  # seconds, megabytes, images a second
Digest = Annotated[str, Checked("Field", pattern="^[0-9a-f]{16}$")]


@dataclass(frozen=True)
class BestScore:
    """The best value of a metric on the test set, and the first epoch that reached it."""

    value: Score
    epoch: Count


@dataclass(frozen=True)
class Metrics:
    """Scores after the last epoch (the headline; empty when diverged), and the best ones."""

    last: Scores
    best: dict[str, dict[str, BestScore]]


@dataclass(frozen=True)
class CurvePoint:
    """Mean training loss of an epoch, and the scores after it where it was evaluated.

    ``loss`` is a finite number, unless the run diverged, or None in epoch 0: before any training.
    """

    epoch: Count
    loss: float | None
    scores: Scores


@dataclass(frozen=True)
class BatchStream:
    """The digest of the first batches: equal for runs with the same data, seed and batch size."""

    batches: int
    sha256: str


@dataclass(frozen=True)
class DatasetContent:
    """What was trained and evaluated on; ``counts`` is {split: {"images": ..., "classes": ...}}."""

    name: str
    fingerprint: str
    counts: dict[str, dict[str, Count]]


def _nested_scores(value: Any) -> Any:
    """Return a point of a curve with ``scores`` by split, which the file has beside the epoch."""
    if not isinstance(value, dict):
        return value
    own = {key: value[key] for key in ("epoch", "loss") if key in value}
    return {**own, "scores": {key: part for key, part in value.items() if key not in own}}


@dataclass(frozen=True)
class Result:
    """``result.json``: what a run of ``spec_digest`` came to. ``reason`` says why it diverged."""

    run_id: str
    spec_digest: Digest
    code_version: str
    status: Literal["ok", "diverged"]
    reason: str
    epochs: Count
    steps: Count
    metrics: Metrics
    curve: list[Annotated[CurvePoint, Checked("BeforeValidator", _nested_scores)]]
    batch_stream: BatchStream
    dataset: DatasetContent
    schema: Literal[1] = 1

    def __post_init__(self) -> None:
        for problem in self._contradictions():
            raise ValueError(problem)

    def _contradictions(self) -> Iterator[str]:
        """Yield what no run leaves, in words."""
        if self.status == "ok" and not any(self.metrics.last.values()):
            yield "ok without a score after the last epoch"
        if self.status == "ok" and self.reason:
            yield f"ok for the reason '{self.reason[:100]}'"
        if self.steps < self.epochs:
            yield f"{self.steps} steps in {self.epochs} epochs"
        seen: set[int] = set()
        for point in self.curve:
            finite = point.loss is not None and math.isfinite(point.loss)
            trained = point.epoch > 0 or point.loss is not None
            if trained and not finite and self.status == "ok":
                yield f"the loss of epoch {point.epoch} is {point.loss} in a run that is ok"
            if point.epoch > self.epochs:
                yield f"epoch {point.epoch} of its curve is none of its {self.epochs}"
            if point.epoch in seen:
                yield f"epoch {point.epoch} stands in its curve twice"
            seen.add(point.epoch)
        for metrics in self.metrics.best.values():
            for metric, best in metrics.items():
                if best.epoch > self.epochs:
                    yield f"epoch {best.epoch} of its best {metric} is none of its {self.epochs}"

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``."""
        curve = [{"epoch": point.epoch, "loss": point.loss, **point.scores} for point in self.curve]
        return {**dataclasses.asdict(self), "curve": curve}

    def write(self, path: Path) -> None:
        """Write ``result.json`` atomically."""
        write_json(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> Result:
        """Return the result at ``path``; raise RunError for anything else."""
        return read_record(cls, path, "a result")


@dataclass(frozen=True)
class EpochRecord:
    """A line of ``metrics.jsonl``: one finished epoch, or epoch 0 of a run without training.

    ``step`` counts the optimiser steps so far. ``loss_ms`` is the time in the loss, per step.
    """

    epoch: Count
    step: Count
    loss: float | None
    learning_rate: Amount
    images_per_second: Amount
    loss_ms: Amount
    seconds: Amount
    evaluation: Scores | None

    @staticmethod
    def write_all(path: Path, records: Sequence[EpochRecord]) -> None:
        """Write ``metrics.jsonl`` atomically."""
        lines = (json.dumps(dataclasses.asdict(record), sort_keys=True) for record in records)
        write_text(path, "".join(f"{line}\n" for line in lines))

    @classmethod
    def read_all(cls, path: Path) -> list[EpochRecord]:
        """Return the lines of ``metrics.jsonl``; raise RunError for anything else."""
        try:
            lines = read_regular(Path(path), MAX_RECORD).splitlines()
        except OSError as error:
            raise unreadable(path, "metrics", str(error)) from error
        return [parse_record(cls, line, path, "metrics") for line in lines]


@dataclass(frozen=True)
class Timing:
    """Seconds and speed: ``startup_seconds`` before the first step, ``loss_ms`` in the loss a step.

    The training alone is counted: updates, and images that went forward and backward through the
    network, None in records of earlier versions.
    """

    startup_seconds: Amount
    train_seconds: Amount
    eval_seconds: Amount
    total_seconds: Amount
    images_per_second: Amount
    loss_ms: Amount
    resumed: Count
    updates: Count | None = None
    images_forward: Count | None = None
    images_backward: Count | None = None


@dataclass(frozen=True)
class MemoryUse:
    """The largest memory of the process and of tensors on the GPU (0 without one), MB."""

    peak_rss_mb: Amount
    peak_gpu_mb: Amount


@dataclass(frozen=True)
class Costs(Timing, MemoryUse):
    """Everything that a run cost."""


COSTS = tuple(item.name for item in dataclasses.fields(Costs))


@dataclass(frozen=True)
class Hardware:
    """A machine without its name."""

    cpu: str
    cores: int | None
    usable_cores: int | None
    memory_gb: float | None
    gpus: list[str]


@dataclass(frozen=True)
class Numerics:
    """What the last bits of a number may depend on."""

    device: str
    precision: str
    threads: int
    instructions: str | None
    deterministic: bool


@dataclass(frozen=True)
class Weights:
    """The network, what its weights started from, and the digest of the first weights."""

    backbone: str
    weights: str
    initial_digest: str
    parameters: int


@dataclass(frozen=True)
class Provenance:
    """``provenance.json``: who computed a result, and at what cost.

    machines         models of the machines that took part, first one first
    package_digests  digests of the versions of the packages in use, first ones first
    """

    run_id: str
    spec_digest: Digest
    code_version: str
    timing: Timing
    memory: MemoryUse
    platform: str
    hardware: Hardware
    machines: list[str]
    packages: dict[str, str]
    package_digests: list[str]
    weights: Weights
    numerics: Numerics
    schema: Literal[1] = 1

    @property
    def costs(self) -> Costs:
        """Time and memory as one record."""
        return Costs(**vars(self.timing), **vars(self.memory))

    def write(self, path: Path) -> None:
        """Write ``provenance.json`` atomically."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> Provenance:
        """Return the provenance at ``path``; raise RunError for anything else."""
        return read_record(cls, path, "the provenance of a run")
