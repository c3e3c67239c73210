"""What a run folder becomes in MLflow: name, parameters, series, final metrics, tags and artifacts.

Metric names: ``recall_at_1`` is the headline (last epoch, logged only when the run is finished),
``best/...`` the best test epoch, ``curve/...`` the values per epoch, ``cost/...`` speed and memory.
Scores are in [0, 1]. A split other than ``test`` stands before the metric: ``small/recall_at_1``.
"""

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.privacy import public
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC, RunSpec, settings_of
from benchmark.core.results import EpochRecord, Provenance, Result, read_own_result
from benchmark.runs.tracking.notes import run_note

COSTS_PER_EPOCH = ("images_per_second", "loss_ms")


@dataclass(frozen=True)
class Point:
    """One value of a series: metric name, value, epoch, and seconds since the run began."""

    name: str
    value: float
    step: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Finished:
    """A finished run's records, all of one specification."""

    result: Result
    digest: str  # of result.json: two trainings of one specification may differ in code
    epochs: list[EpochRecord]
    provenance: Provenance | None
    ended: float  # seconds since 1970

    @property
    def seconds(self) -> float:
        """What the run took, 0 where it was not recorded."""
        return self.provenance.timing.total_seconds if self.provenance else 0.0

    @property
    def started(self) -> float:
        """Seconds since 1970, reckoned back from the end."""
        return self.ended - self.seconds


def read_finished(spec: RunSpec, folder: Path) -> Finished | None:
    """Return the records of a finished run of exactly this specification, or None."""
    path = Path(folder) / RESULT
    try:
        result = read_own_result(path, spec.digest)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        epochs = read_epochs(folder) or _epochs_of(result)
        return Finished(result, digest, epochs, _provenance(spec, folder), path.stat().st_mtime)
    except (RunError, OSError):
        return None  # absent, stale or damaged: collecting names it, importing waits for another


def read_epochs(folder: Path) -> list[EpochRecord]:
    """Return the lines of metrics.jsonl; empty when there are none yet."""
    try:
        return EpochRecord.read_all(Path(folder) / METRICS)
    except RunError:
        return []


def run_name(spec: RunSpec) -> str:
    """Return a name for people, for example ``smooth_ap bs128 seed0 (glyphs_1k/resnet10t)``."""
    where = f"{spec.dataset.label}/{spec.setting}"
    return f"{spec.loss.label} bs{spec.batch_size} seed{spec.seed} ({where})"


def params(spec: RunSpec) -> dict[str, str]:
    """Return all settings as flat text: what runs are compared by, then ``section.option``."""
    flat: dict[str, Any] = {
        "loss": spec.loss.label,
        "batch_size": spec.batch_size,
        "seed": spec.seed,
        "dataset": spec.dataset.label,
        "backbone": spec.recipe.model.backbone,
        "setting": spec.setting.label,
        "loss.name": spec.loss.name,
    }
    flat |= {name.removeprefix("recipe."): value for name, value in settings_of(spec).items()}
    return {sanitised(key): _text(value) for key, value in flat.items()}


def tags(spec: RunSpec, study: str) -> dict[str, str]:
    """Return the tags known before the run; neutral words where MLflow would name the user."""
    return {
        "study": study,
        "run_id": spec.run_id,
        "spec_digest": spec.digest,
        "status": "running",
        "mlflow.user": "benchmark",
        "mlflow.source.name": "python -m benchmark train",
        "mlflow.source.type": "LOCAL",
    }


def final_tags(finished: Finished) -> dict[str, str]:
    """Return the tags known after the run, but for the mark that its import is complete."""
    result = finished.result
    return {
        "status": result.status,
        "code_version": result.code_version,
        "dataset_fingerprint": result.dataset.fingerprint,
        **({"platform": finished.provenance.platform} if finished.provenance else {}),
        "mlflow.note.content": run_note(result.run_id, public(result.reason)),
    }


def series(epochs: list[EpochRecord]) -> list[Point]:
    """Return the values per epoch; a loss that is not finite leaves a gap."""
    points, seconds = [], 0.0
    for item in epochs:
        seconds += item.seconds
        values: dict[str, float | None] = {
            "curve/loss": item.loss,
            "curve/learning_rate": item.learning_rate,
            **{f"cost/{name}": getattr(item, name) for name in COSTS_PER_EPOCH},
        }
        for split, metrics in (item.evaluation or {}).items():
            values |= {f"curve/{_split(split)}{key}": value for key, value in metrics.items()}
        points += _points(values, item.epoch, seconds)
    return points


def final_points(finished: Finished) -> list[Point]:
    """Return the numbers that runs are compared by: last epoch, best test epoch, cost."""
    result, end = finished.result, finished.seconds
    points = []
    for split, metrics in result.metrics.last.items():
        last = {f"{_split(split)}{key}": value for key, value in metrics.items()}
        points += _points(last, result.epochs, end)
    for split, scores in result.metrics.best.items():
        for key, best in scores.items():
            points += _points({f"best/{_split(split)}{key}": best.value}, best.epoch, end)
    costs = dataclasses.asdict(finished.provenance.costs) if finished.provenance else {}
    whole = {f"cost/{key}": costs[key] for key in costs if key not in COSTS_PER_EPOCH}
    return points + _points(whole, result.epochs, end)


def _points(values: Mapping[str, float | None], epoch: int, seconds: float) -> list[Point]:
    return [
        Point(sanitised(name), float(value), epoch, seconds)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    ]


def artifacts(spec: RunSpec, finished: Finished) -> dict[str, str]:
    """Return ``{file name: text}``; absolute paths inside are cut to their last part."""
    files = {SPEC: spec.as_json(), RESULT: finished.result.as_json()}
    if finished.provenance:
        files[PROVENANCE] = dataclasses.asdict(finished.provenance)
    texts = {
        name: json.dumps(public(value), indent=2, sort_keys=True) for name, value in files.items()
    }
    lines = [dataclasses.asdict(record) for record in finished.epochs]
    texts[METRICS] = "\n".join(json.dumps(public(line), sort_keys=True) for line in lines)
    return {name: text + "\n" for name, text in texts.items()}


def sanitised(name: str) -> str:
    """Return ``name`` in the letters that MLflow allows for metrics and parameters."""
    return re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)


def _split(split: str) -> str:
    return "" if split == "test" else f"{split}/"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return str(public(text))


def _provenance(spec: RunSpec, folder: Path) -> Provenance | None:
    try:
        return Provenance.read(Path(folder) / PROVENANCE)
    except RunError:
        return None


def _epochs_of(result: Result) -> list[EpochRecord]:
    """Return the curve of a result in the form of metrics.jsonl, for folders copied without it."""
    unknown = dict.fromkeys(("learning_rate", "images_per_second", "loss_ms"), math.nan)
    return [
        EpochRecord(
            epoch=point.epoch,
            step=0,
            loss=point.loss,
            seconds=0.0,
            evaluation=point.scores or None,
            **unknown,
        )
        for point in result.curve
    ]
