"""The specification of a run (``spec.json``), which is all that training reads.

``benchmark.core.results`` has the records that a run leaves. All records carry a schema number and
the digest of the specification that they belong to.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from benchmark.core.errors import RunError
from benchmark.core.files import read_record, write_json
from benchmark.core.options import build, stated
from benchmark.core.recipe import Recipe

SCHEMA = 1
RESULTS = Path("results")
# Other names in the folder of results. A study with such a name would overwrite them.
RESERVED = ("runs", "cache", "reference", "bench", "test-artifacts", "mlartifacts", "mlruns")
RESERVED_START = "mlflow.db"  # and the files that SQLite keeps beside it

SPEC = "spec.json"
RESULT = "result.json"
METRICS = "metrics.jsonl"
PROVENANCE = "provenance.json"
NEIGHBOURS = "neighbours.npz"
QUERIES = "queries.npz"
KEPT_ROWS = "embeddings-{}.npz"  # of a split, with evaluation.keep_embeddings
TRACE = "trace.pt"
SPEC_DIGEST = "spec_digest"  # array of both files: the specification that they belong to
LOG = "train.log"
STATE = "state"
# Files that 'build' writes below a study's folder: the report, and a list of failed parts.
PAGE = "report/index.html"
FAILED = "report/failed.txt"
IMPORTED = "imported.txt"  # into MLflow

STATUSES = ("ok", "diverged", "missing", "failed", "stale")
# Decides whether a run is trained. An outdated run has files of another specification.
Standing = Literal["finished", "outdated", "to do"]


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
        """The cell: what all runs share that differ in the seed alone."""
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

    def seed_of(self, role: Literal["weights", "order", "augmentation"]) -> int:
        """Return the seed of a source of noise: the recipe's for it, or else the run's."""
        seed: int | None = getattr(self.recipe.seeds, role)
        return self.seed if seed is None else seed

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
            "recipe": stated(self.recipe),
        }

    def write(self, path: Path) -> None:
        """Write ``spec.json`` atomically; equal specifications give equal bytes."""
        write_json(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        """Return the specification at ``path``.

        Raise RunError if the file is not one of this schema, ConfigError if its recipe has options
        that this version does not know.
        """
        parse = partial(_specification, str(path))
        return read_record(cls, path, "a run specification", "specs STUDY", parse)


def _specification(place: str, content: bytes) -> RunSpec:
    data = json.loads(content)
    if data["schema"] != SCHEMA:
        raise ValueError(f"it has schema {data['schema']}, not {SCHEMA}")
    loss = data["loss"]
    return RunSpec(
        DatasetChoice(data["run_id"].partition("/")[0], **data["dataset"]),
        Setting.from_label(data["setting"]),
        LossChoice(loss["variant"], loss["name"], loss["params"]),
        data["batch_size"],
        data["seed"],
        build(Recipe, data["recipe"], place),
    )


def settings_of(spec: RunSpec) -> dict[str, Any]:
    """Return the settings of a run as flat names: dataset.root, loss.tau, recipe.optimizer.lr."""

    settings: dict[str, Any] = {"dataset.name": spec.dataset.name}
    settings |= {f"dataset.{name}": value for name, value in spec.dataset.params.items()}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for inner in value:
                add(f"{name}.{inner}", value[inner])
        else:
            settings[name] = value

    add("loss", spec.loss.params)
    for section, values in dataclasses.asdict(spec.recipe).items():
        values.pop(KEEPING, None)
        if section == "sampler":
            values = {"name": values["name"], **values["params"]}
        settings |= {f"recipe.{section}.{name}": value for name, value in values.items()}
    return settings


def digest_of(path: Path) -> str | None:
    """Return the digest of the specification at ``path``, unchecked; None if it cannot be read."""
    try:
        return _digest(read_record(dict[str, Any], path, "a run specification"))
    except RunError:
        return None


def _digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(without_keeping(data), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


KEEPING = "keep_embeddings"


def without_keeping(data: Any) -> Any:
    """Return the data of a document without the option that moves no number."""
    if isinstance(data, Mapping):
        return {key: without_keeping(value) for key, value in data.items() if key != KEEPING}
    if isinstance(data, list | tuple):
        return [without_keeping(value) for value in data]
    return data


SEPARATOR = "~"  # between the backbone and the options of a setting's label


@dataclass(frozen=True, order=True)
class Setting:
    """A network under a recipe, and the named options that change the recipe."""

    backbone: str
    options: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The path component, for example ``resnet50~sota``."""
        return SEPARATOR.join((self.backbone, *self.options))

    @classmethod
    def from_label(cls, label: str) -> Setting:
        """Return the setting with this label, as files and paths hold it."""
        backbone, *options = label.split(SEPARATOR)
        return cls(backbone, tuple(options))

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, order=True)
class Cell:
    """One dataset, setting, loss and batch size.

    dataset     label of the dataset
    loss        label of the variant, for example ``smooth_ap_tau0.1``
    base_loss   registry name of the loss
    """

    dataset: str
    setting: Setting
    loss: str
    base_loss: str
    batch_size: int

    @classmethod
    def of(cls, values: Iterable[Any]) -> Cell:
        """Return the cell whose CELL_COLUMNS are ``values``."""
        dataset, setting, loss, base_loss, batch_size = values
        return cls(dataset, Setting.from_label(setting), loss, base_loss, int(batch_size))

    @property
    def label(self) -> str:
        """The folder of the cell's runs, for example ``sop/resnet50~sota/roadmap/bs128``."""
        return f"{self.dataset}/{self.setting}/{self.loss}/bs{self.batch_size}"

    def run_id(self, seed: int) -> str:
        """Return the identity of a run of this cell, which is its folder below ``results/runs``."""
        return f"{self.label}/seed{seed}"

    def __str__(self) -> str:
        return self.label


CELL_COLUMNS = tuple(item.name for item in fields(Cell))
