"""The specification of a run (``spec.json``), which is all that training reads.

``benchmark.core.results`` has the records that a run leaves. All records carry a schema number and the
digest of the specification that they belong to.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmark.core.cells import Cell, Setting
from benchmark.core.errors import ConfigError, RunError
from benchmark.core.files import write_json
from benchmark.core.options import make, problems
from benchmark.core.recipe import Recipe, complete_recipe_schema

SCHEMA = 1
RESULTS = Path("results")
# What else lies in the folder of results, so that no study may be called so: it would be written over.
RESERVED = ("runs", "cache", "reference", "bench", "test-artifacts", "mlartifacts", "mlruns")
RESERVED_START = "mlflow.db"  # and the files that SQLite keeps beside it

SPEC = "spec.json"
RESULT = "result.json"
METRICS = "metrics.jsonl"
PROVENANCE = "provenance.json"
NEIGHBOURS = "neighbours.npz"
LOG = "train.log"
STATE = "state"

STATUSES = ("ok", "diverged", "missing", "failed", "stale")
# The joined table of runs and scores that some steps still read.
LONG_COLUMNS = (
    "run_id",
    "dataset",
    "setting",
    "loss",
    "base_loss",
    "batch_size",
    "seed",
    "status",
    "split",
    "selection",
    "epoch",
    "metric",
    "value",
    "spec_digest",
    "code_version",
    "platform",
    "reason",
)

DIGEST = re.compile(r"[0-9a-f]{16}")
_ADVICE = "write it again with 'python -m benchmark specs STUDY', and change the study instead"


@dataclass(frozen=True)
class DatasetChoice:
    """A registered dataset with its parameters; ``label`` is its name in paths and tables."""

    label: str
    name: str
    params: dict[str, Any]


@dataclass(frozen=True)
class LossChoice:
    """A registered loss with all its hyperparameters; ``label`` is its name in paths and tables."""

    label: str
    name: str
    params: dict[str, Any]


@dataclass(frozen=True)
class RunSpec:
    """Everything one training and evaluation needs. Equal specifications give equal numbers."""

    dataset: DatasetChoice
    setting: Setting
    loss: LossChoice
    batch_size: int
    seed: int
    recipe: Recipe

    @property
    def cell(self) -> Cell:
        """What this run shares with those that differ from it in the seed alone."""
        return Cell(
            self.dataset.label, self.setting, self.loss.label, self.loss.name, self.batch_size
        )

    @property
    def run_id(self) -> str:
        """The run's identity: dataset/setting/loss/bs<k>/seed<s>."""
        return self.cell.run_id(self.seed)

    @property
    def folder(self) -> Path:
        """The run's folder relative to the results root."""
        return Path("runs") / self.run_id

    @cached_property
    def digest(self) -> str:
        """The SHA-256 (16 hex digits) of the canonical JSON of this specification."""
        return _digest(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``spec.json``."""
        loss = {"name": self.loss.name, "variant": self.loss.label, "params": self.loss.params}
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "dataset": {"name": self.dataset.name, "params": self.dataset.params},
            "setting": self.setting.label,
            "loss": loss,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "recipe": dataclasses.asdict(self.recipe),
        }

    def write(self, path: Path) -> None:
        """Write ``spec.json`` atomically; equal specifications give equal bytes."""
        write_json(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        """Return the specification at ``path``.

        Raise RunError for a file that is none, and ConfigError, with all problems at once, for one that no
        study would have written. Hyperparameters and dataset parameters are checked by their component.
        """
        return cls.from_json(read_json(path, "a run specification"), str(path))

    @classmethod
    def from_json(cls, data: Any, source: str) -> RunSpec:
        """Return the specification whose ``as_json`` is ``data``; raise as ``read`` does."""
        if not isinstance(data, dict) or set(data) != _KEYS or data["schema"] != SCHEMA:
            raise RunError(
                f"{source} is not a run specification of schema {SCHEMA}; "
                "write it again with 'python -m benchmark specs STUDY'"
            )
        found = problems(_schema(), data)
        if found:
            raise ConfigError(source, [*found, _ADVICE])
        label = data["run_id"].partition("/")[0]
        dataset, loss = data["dataset"], data["loss"]
        spec = cls(
            DatasetChoice(label, dataset["name"], dataset["params"]),
            Setting.from_label(data["setting"]),
            LossChoice(loss["variant"], loss["name"], loss["params"]),
            data["batch_size"],
            data["seed"],
            make(Recipe, data["recipe"]),
        )
        if spec.run_id != data["run_id"]:
            name = (
                f"run_id  '{data['run_id']}' is not the name of this run, which is '{spec.run_id}'"
            )
            raise ConfigError(source, [name, _ADVICE])
        return spec


_KEYS = {"schema", "run_id", "dataset", "setting", "loss", "batch_size", "seed", "recipe"}


def settings_of(spec: RunSpec) -> dict[str, Any]:
    """Return the settings of a run as flat names: dataset.root, loss.tau, recipe.optimizer.lr."""
    settings = {"dataset.name": spec.dataset.name}
    settings |= {f"dataset.{name}": value for name, value in spec.dataset.params.items()}
    settings |= {f"loss.{name}": value for name, value in spec.loss.params.items()}
    for section, values in dataclasses.asdict(spec.recipe).items():
        if section == "sampler":
            values = {"name": values["name"], **values["params"]}
        settings |= {f"recipe.{section}.{name}": value for name, value in values.items()}
    return settings


def digest_of(path: Path) -> str | None:
    """Return the digest of the specification at ``path``, unchecked; None where there is none."""
    try:
        data = read_json(path, "a run specification")
    except RunError:
        return None
    return _digest(data) if isinstance(data, dict) else None


def read_json(path: Path, what: str) -> Any:
    """Return the parsed file; raise RunError naming the path when it is absent or torn."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist; expected {what}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(
            f"{path} cannot be read as {what} ({error}); delete it and run again"
        ) from error


def _digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _schema() -> dict[str, Any]:
    """Return the JSON Schema of a specification; in its recipe nothing is left to defaults."""
    text = {"type": "string"}
    named = {"name": text, "params": {"type": "object"}}

    def closed(properties: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    run_id = {
        **text,
        "pattern": "^[A-Za-z0-9][^/]*/",
        "description": "starts with the dataset's label",
    }
    return {
        "type": "object",
        "properties": {
            "run_id": run_id,
            "setting": text,
            "dataset": closed(named),
            "loss": closed({**named, "variant": text}),
            "batch_size": {"type": "integer", "minimum": 1},
            "seed": {"type": "integer", "minimum": 0},
            "recipe": complete_recipe_schema(),
        },
    }
