"""What a run folder becomes in MLflow: name, parameters, series, final metrics, tags and artifacts.

Metric names: ``recall_at_1`` is the headline (last epoch, logged only when the run is finished), ``best/...``
the best test epoch, ``curve/...`` the values per epoch, ``cost/...`` speed and memory. Scores are in [0, 1].
A split other than ``test`` stands before the metric: ``small/recall_at_1``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC, RunSpec, read_json
from benchmark.runs.tracking.notes import run_note

LONGEST_PARAM = 5000  # characters; MLflow refuses more than 6000
LONGEST_NAME = 250
ABSOLUTE = re.compile(r"(?<![\w.:/~\\])(?:~?/|~\\|[A-Za-z]:[\\/])[^\s'\"]+")
COSTS = ("images_per_second", "loss_ms")


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

    result: dict[str, Any]
    digest: str  # of result.json: two trainings of one specification may differ in code
    epochs: list[dict[str, Any]]
    provenance: dict[str, Any]
    ended: float  # seconds since 1970

    @property
    def started(self) -> float:
        """Seconds since 1970, reckoned back from the end."""
        return self.ended - float(self.provenance.get("timing", {}).get("total_seconds", 0.0))


def read_finished(spec: RunSpec, folder: Path) -> Finished | None:
    """Returns the records of a finished run of exactly this specification, or None."""
    path = Path(folder) / RESULT
    try:
        result = read_json(path, "a result")
        if result["spec_digest"] != spec.digest:
            return None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        epochs = read_epochs(folder) or _epochs_of(result)
        return Finished(result, digest, epochs, _provenance(folder), path.stat().st_mtime)
    except (RunError, OSError, KeyError, TypeError):
        return None  # absent or torn: collecting names it, importing waits for a whole one


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """Returns the lines of metrics.jsonl; empty when there are none yet."""
    try:
        lines = (Path(folder) / METRICS).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []


def run_name(spec: RunSpec) -> str:
    """Returns a name for people, for example ``smooth_ap bs128 seed0 (glyphs_1k/resnet10t)``."""
    return f"{spec.loss['variant']} bs{spec.batch_size} seed{spec.seed} ({_label(spec)}/{spec.setting})"


def params(spec: RunSpec) -> dict[str, str]:
    """Returns all settings as flat text: what runs are compared by first, then ``section.option``."""
    flat: dict[str, Any] = {
        "loss": spec.loss["variant"],
        "batch_size": spec.batch_size,
        "seed": spec.seed,
        "dataset": _label(spec),
        "backbone": spec.recipe["model"]["backbone"],
        "setting": spec.setting,
        "loss.name": spec.loss["name"],
        "dataset.name": spec.dataset["name"],
    }
    flat |= _flatten("loss", spec.loss["params"]) | _flatten("dataset", spec.dataset["params"])
    for name, values in spec.recipe.items():
        flat |= _flatten(
            name, {**values, **values.get("params", {})} if name == "sampler" else values
        )
    flat.pop("sampler.params", None)
    return {sanitised(key): _text(value) for key, value in flat.items()}


def tags(spec: RunSpec, study: str) -> dict[str, str]:
    """Returns the tags known before the run starts, with neutral words where MLflow would name the user."""
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
    """Returns the tags known when the run is finished, apart from the mark that the import is complete."""
    result = finished.result
    values = {
        "status": result["status"],
        "code_version": result.get("code_version", ""),
        "dataset_fingerprint": result.get("dataset", {}).get("fingerprint", ""),
        "platform": finished.provenance.get("platform", ""),
        "mlflow.note.content": run_note(result["run_id"], public(result.get("reason", ""))),
    }
    return {key: str(value) for key, value in values.items() if value}


def series(epochs: list[dict[str, Any]]) -> list[Point]:
    """Returns the values per epoch; numbers only, so a loss that is not finite leaves a gap."""
    points, seconds = [], 0.0
    for line in epochs:
        seconds += float(line.get("seconds") or 0.0)
        values = {f"curve/{key}": line.get(key) for key in ("loss", "learning_rate")}
        values |= {f"cost/{key}": line.get(key) for key in COSTS}
        for split, metrics in (line.get("evaluation") or {}).items():
            values |= {f"curve/{_split(split)}{key}": value for key, value in metrics.items()}
        points += [
            Point(sanitised(key), float(value), int(line["epoch"]), seconds)
            for key, value in values.items()
            if _is_number(value)
        ]
    return points


def final_points(finished: Finished) -> list[Point]:
    """Returns the numbers that runs are compared by: last epoch, best test epoch, cost."""
    result, provenance = finished.result, finished.provenance
    last, end = int(result["epochs"]), finished.ended - finished.started
    points = []
    for split, metrics in result["metrics"].get("last", {}).items():
        points += [
            Point(f"{_split(split)}{key}", value, last, end) for key, value in metrics.items()
        ]
    for split, metrics in result["metrics"].get("best", {}).items():
        points += [
            Point(f"best/{_split(split)}{key}", best["value"], int(best["epoch"]), end)
            for key, best in metrics.items()
        ]
    costs = {**provenance.get("timing", {}), **provenance.get("memory", {})}
    points += [
        Point(f"cost/{key}", value, last, end) for key, value in costs.items() if key not in COSTS
    ]
    return [
        Point(sanitised(point.name), float(point.value), point.step, point.seconds)
        for point in points
        if _is_number(point.value)
    ]


def artifacts(spec: RunSpec, finished: Finished) -> dict[str, str]:
    """Returns ``{file name: text}``; absolute paths inside are cut to their last part."""
    files = {
        SPEC: dataclasses.asdict(spec),
        RESULT: finished.result,
        PROVENANCE: finished.provenance,
    }
    texts = {
        name: json.dumps(public(value), indent=2, sort_keys=True)
        for name, value in files.items()
        if value
    }
    texts[METRICS] = "\n".join(json.dumps(public(line), sort_keys=True) for line in finished.epochs)
    return {name: text + "\n" for name, text in texts.items()}


def public(value: Any) -> Any:
    """Returns ``value`` without absolute paths, which name users and machines: only the last part stays."""
    if isinstance(value, str):
        return ABSOLUTE.sub(lambda match: _last_part(match.group()), value)
    if isinstance(value, dict):
        return {key: public(item) for key, item in value.items()}
    if isinstance(value, list):
        return [public(item) for item in value]
    return value


def sanitised(name: str) -> str:
    """Returns ``name`` in the letters that MLflow allows for metrics and parameters."""
    return re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)[:LONGEST_NAME]


def _last_part(path: str) -> str:
    name = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
    return f".../{name}" if name else "..."


def _label(spec: RunSpec) -> str:
    return spec.run_id.split("/")[0]


def _split(split: str) -> str:
    return "" if split == "test" else f"{split}/"


def _flatten(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}.{key}"
        flat |= _flatten(name, value) if isinstance(value, dict) and value else {name: value}
    return flat


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return public(text)[:LONGEST_PARAM]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _provenance(folder: Path) -> dict[str, Any]:
    try:
        return read_json(Path(folder) / PROVENANCE, "provenance")
    except RunError:
        return {}


def _epochs_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the curve of a result in the form of metrics.jsonl, for folders copied without it."""
    return [
        {
            "epoch": point["epoch"],
            "loss": point["loss"],
            "evaluation": {key: value for key, value in point.items() if isinstance(value, dict)}
            or None,
        }
        for point in result.get("curve", [])
    ]
