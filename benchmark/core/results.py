"""The records that a run writes: result, metrics of its epochs, and provenance.

``result.json`` has the same bits for the same specification and code. ``provenance.json`` has what
may differ between equal results. A file that cannot be read raises RunError with its path.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.core.files import read_record, replacing, write_json, write_text
from benchmark.core.records import QUERIES, SPEC_DIGEST

Scores = dict[str, dict[str, float]]  # split -> metric -> value


@dataclass(frozen=True)
class BestScore:
    """The best value of a metric on the test set, and the first epoch that reached it."""

    value: float
    epoch: int


@dataclass(frozen=True)
class Metrics:
    """Scores after the last epoch (the headline; empty when diverged), and the best ones."""

    last: Scores
    best: dict[str, dict[str, BestScore]]


@dataclass(frozen=True)
class CurvePoint:
    """Mean training loss of an epoch, and the scores after it (empty without an evaluation).

    ``loss`` is None in epoch 0, before any training. It is not finite only if the run diverged.
    """

    epoch: int
    loss: float | None
    scores: Scores


@dataclass(frozen=True)
class BatchStream:
    """The digest of the first batches: equal for runs with the same data, seed and batch size."""

    batches: int
    sha256: str


@dataclass(frozen=True)
class DatasetContent:
    """The dataset of a run; ``counts`` is {split: {"images": ..., "classes": ...}}."""

    name: str
    fingerprint: str
    counts: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Result:
    """``result.json``: the result of a run. ``reason`` says why it diverged, "" if it did not."""

    run_id: str
    spec_digest: str
    code_version: str
    status: Literal["ok", "diverged"]
    reason: str
    epochs: int
    steps: int
    metrics: Metrics
    curve: list[CurvePoint]
    batch_stream: BatchStream
    dataset: DatasetContent
    schema: Literal[1] = 1

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``."""
        curve = [{"epoch": point.epoch, "loss": point.loss, **point.scores} for point in self.curve]
        return {**dataclasses.asdict(self), "curve": curve}

    def write(self, path: Path) -> None:
        """Write ``result.json`` atomically."""
        write_json(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> Result:
        """Return the result at ``path``; raise RunError if it is absent or unreadable."""
        return read_record(cls, path, "a result", parse=_with_scores)


def _with_scores(data: bytes) -> Any:
    content = json.loads(data)
    for point in content["curve"]:  # in the file, splits are keys beside epoch and loss
        splits = [name for name in point if name not in ("epoch", "loss")]
        point["scores"] = {name: point.pop(name) for name in splits}
    return content


@dataclass(frozen=True)
class EpochRecord:
    """A line of ``metrics.jsonl``: one finished epoch, or epoch 0 of a run without training.

    ``step`` counts the optimiser steps so far. ``loss_ms`` is the time in the loss, per step.
    """

    epoch: int
    step: int
    loss: float | None
    learning_rate: float
    images_per_second: float
    loss_ms: float
    seconds: float
    evaluation: Scores | None

    @staticmethod
    def write_all(path: Path, records: Sequence[EpochRecord]) -> None:
        """Write ``metrics.jsonl`` atomically."""
        lines = (json.dumps(dataclasses.asdict(record), sort_keys=True) for record in records)
        write_text(path, "".join(f"{line}\n" for line in lines))

    @classmethod
    def read_all(cls, path: Path) -> list[EpochRecord]:
        """Return the lines of ``metrics.jsonl``; raise RunError if it is absent."""
        return read_record(
            list[EpochRecord],
            path,
            "metrics",
            parse=lambda data: [json.loads(line) for line in data.splitlines()],
        )


@dataclass(frozen=True)
class Timing:
    """Seconds and speed of a run.

    startup_seconds  before the first step
    loss_ms          in the loss, per step
    updates          in training, like ``images_forward`` and ``images_backward``: images that went
                     through the network in each direction; None in records of earlier versions
    """

    startup_seconds: float
    train_seconds: float
    eval_seconds: float
    total_seconds: float
    images_per_second: float
    loss_ms: float
    resumed: int
    updates: int | None = None
    images_forward: int | None = None
    images_backward: int | None = None


@dataclass(frozen=True)
class MemoryUse:
    """The largest memory of the process, and of tensors on the GPU (0 without a GPU), MB."""

    peak_rss_mb: float
    peak_gpu_mb: float


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

    @property
    def processor(self) -> str:
        """The GPUs, or without a GPU the CPU."""
        return ", ".join(self.gpus) or self.cpu


@dataclass(frozen=True)
class Numerics:
    """Facts that the last bits of a number may depend on."""

    device: str
    precision: str
    threads: int
    kernels: str
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
    """``provenance.json``: what computed a result, and at what cost.

    machines         models of the machines that took part, in order
    package_digests  digests of the versions of the packages in use, in order
    """

    run_id: str
    spec_digest: str
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
        """Return the provenance at ``path``; raise RunError if it is absent or unreadable."""
        return read_record(cls, path, "the provenance of a run")


Array = NDArray[Any]
RECALL = "recall_at_"
_WHOLE = ("query", "label", "nearest")


@dataclass(frozen=True)
class QueryScores:
    """The scores of the queries of one split; all arrays are (Q,).

    query      int32: number of the query in its protocol; repeated if the protocol repeats queries
    label      int32: class of the query
    nearest    int32: rank of the first match, 1 = nearest
    averages   float32 in [0, 1]: average precision "map", and "map_at_r" except for judged lists

    Queries without a match are left out.
    """

    query: Array
    label: Array
    nearest: Array
    averages: Mapping[str, Array]

    def of(self, metric: str) -> NDArray[np.float64] | None:
        """Return each query's score (Q,), whose mean is the metric; None if it was not kept."""
        if metric.startswith(RECALL):
            return (self.nearest <= int(metric.removeprefix(RECALL))).astype(float)
        kept = self.averages.get(metric)
        return None if kept is None else kept.astype(float)


def joined(evaluations: Sequence[QueryScores], numbers: Sequence[Array]) -> QueryScores:
    """Return the scores of several evaluations as one; ``numbers`` are the queries' numbers."""
    label = np.concatenate([evaluation.label for evaluation in evaluations])
    nearest = np.concatenate([evaluation.nearest for evaluation in evaluations])
    averages = {}
    for name in evaluations[0].averages:
        averages[name] = np.concatenate([evaluation.averages[name] for evaluation in evaluations])
    return QueryScores(np.concatenate(numbers), label, nearest, averages)


def write_query_scores(folder: Path, digest: str, splits: Mapping[str, QueryScores]) -> None:
    """Write the file of a run with this digest of its specification, atomically."""
    arrays: dict[str, Array] = {SPEC_DIGEST: np.array(digest)}
    for split, scores in splits.items():
        arrays |= {f"{split}/{name}": getattr(scores, name).astype(np.int32) for name in _WHOLE}
        kept = scores.averages.items()
        arrays |= {f"{split}/{name}": values.astype(np.float32) for name, values in kept}
    with replacing(folder / QUERIES) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_query_scores(folder: Path, digest: str) -> dict[str, QueryScores] | None:
    """Return the scores by split of the run with this digest of its specification.

    Return None if the file is absent, empty or of another specification.
    """
    path = folder / QUERIES
    if not path.exists() or not path.stat().st_size:
        return None
    with np.load(path) as arrays:
        if str(arrays[SPEC_DIGEST]) != digest:
            return None
        by_split: dict[str, dict[str, Array]] = {}
        for name in arrays.files:
            split, _, array = name.rpartition("/")
            if split:
                by_split.setdefault(split, {})[array] = arrays[name]
    scores = {}
    for split, kept in by_split.items():
        numbers = {name: kept.pop(name) for name in _WHOLE}
        scores[split] = QueryScores(**numbers, averages=kept)
    return scores
