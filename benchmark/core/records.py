"""The records that pass between steps: a run's specification, its result and the long table's columns.

``spec.json`` is all that training reads; ``result.json`` is all that collecting needs. Both carry a
schema number and the digest that ties a result to the very specification it was made from.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.files import write_json

SCHEMA = 1
RESULTS = Path("results")

SPEC = "spec.json"
RESULT = "result.json"
METRICS = "metrics.jsonl"
PROVENANCE = "provenance.json"
NEIGHBOURS = "neighbours.npz"
LOG = "train.log"
STATE = "state"

# The long table: one row per run, selection, split, epoch and metric. Scores are in [0, 1].
LONG_COLUMNS = (
    "run_id",
    "dataset",
    "setting",  # backbone label, followed by "~option" for named options
    "loss",  # variant label, for example smooth_ap_tau0.1
    "base_loss",  # registry name
    "batch_size",
    "seed",
    "status",  # one of STATUSES
    "split",  # "test", a protocol name, or "train" for curves and costs
    "selection",  # "last" (headline), "best" (best test epoch, labelled), "curve" (per epoch), "cost"
    "epoch",
    "metric",
    "value",
    "spec_digest",
    "code_version",
    "platform",
    "reason",  # why a run is diverged, stale or failed; empty otherwise
)
STATUSES = ("ok", "diverged", "missing", "failed", "stale")


@dataclass(frozen=True)
class RunSpec:
    """Everything one training and evaluation needs. Equal specs give equal numbers.

    run_id      dataset/setting/loss/bs<k>/seed<s>: the folder below ``results/runs``
    dataset     {"name": registry name, "params": {...}}
    setting     backbone label, with "~option" for each named option
    loss        {"name": registry name, "variant": label, "params": {...all hyperparameters...}}
    recipe      {"model", "input", "optimizer", "schedule", "sampler", "training", "evaluation"}:
                each a complete dict of the matching Config dataclass
    """

    run_id: str
    dataset: dict[str, Any]
    setting: str
    loss: dict[str, Any]
    batch_size: int
    seed: int
    recipe: dict[str, Any]
    schema: int = field(default=SCHEMA)

    @property
    def digest(self) -> str:
        """The SHA-256 (16 hex digits) of the canonical JSON of this specification."""
        text = json.dumps(vars(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def folder(self) -> Path:
        """The run's folder relative to the results root, as a path with forward slashes."""
        return Path("runs") / self.run_id

    def write(self, path: Path) -> None:
        """Writes ``spec.json`` atomically; equal specs give equal bytes."""
        write_json(path, dataclasses.asdict(self))

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        """Returns the specification at ``path``; raises RunError when it is not one."""
        data = read_json(path, "a run specification")
        names = {item.name for item in dataclasses.fields(cls)}
        if not isinstance(data, dict) or set(data) != names or data.get("schema") != SCHEMA:
            raise RunError(
                f"{path} is not a run specification of schema {SCHEMA}; "
                "write it again with 'python -m benchmark specs STUDY'"
            )
        return cls(**data)


def run_id(dataset: str, setting: str, loss: str, batch_size: int, seed: int) -> str:
    """Returns the identity of a run, which is also its folder below ``results/runs``."""
    return f"{dataset}/{setting}/{loss}/bs{batch_size}/seed{seed}"


def read_json(path: Path, what: str) -> Any:
    """Returns the parsed file; raises RunError naming the path when it is absent or torn."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist; expected {what}") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(
            f"{path} cannot be read as {what} ({error}); delete it and run again"
        ) from error
