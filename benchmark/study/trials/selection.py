"""What was chosen by the trials (``selection.json``), and the study file of the final runs."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ConfigError, RunError
from benchmark.core.files import copy_file, write_json, write_text
from benchmark.core.record_files import read_record
from benchmark.core.records import SCHEMA
from benchmark.study.documents import read_document
from benchmark.study.model import Block, Study
from benchmark.study.recipes import recipes_beside

FILE = "selection.json"
SUFFIX = "-selected"
AUTHORS, EQUAL = "authors", "equal"  # options of the final runs: "authors", "equal16"


@dataclass(frozen=True)
class Choice:
    """The setting of one loss on one dataset that is best after so many trials.

    block       name of the block in the study file
    trials      number of trials it was chosen from; 0 is the published setting, chosen from none
    trial       number of the chosen one
    score       mean over folds of the study's first metric, on held-out training classes; None
                where the trial has no score
    override    the partial recipe of the setting
    """

    block: str
    dataset: str
    batch_size: int
    loss: str
    trials: int
    trial: int
    score: float | None
    override: dict[str, Any]

    @property
    def option(self) -> str:
        """The option of the final runs: the rule set, with its number of trials."""
        return f"{EQUAL}{self.trials}" if self.trials else AUTHORS


@dataclass(frozen=True)
class Selection:
    """All choices of a study."""

    schema: int
    study: str
    metric: str
    choices: list[Choice]

    @classmethod
    def of(cls, study: Study, choices: list[Choice]) -> Selection:
        """Return the selection of ``study``."""
        return cls(SCHEMA, study.name, study.metrics[0], choices)

    def write(self, path: Path) -> None:
        """Write the record atomically."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> Selection:
        """Return the record at ``path``; raise RunError when it is absent or damaged."""
        return read_record(cls, path, "a selection of settings")


def selected_path(study: Study, results: Path) -> Path:
    """Return where the study file of the final runs lies; its name is the study's with a suffix."""
    return study.folder(results) / f"{study.name}{SUFFIX}.yaml"


def write_selected(study: Study, selection: Selection, results: Path) -> Path:
    """Write the study file of the final runs beside the selection, and return its path.

    Its recipes that lie beside the study are copied, so that the file stands by itself.
    """
    path = selected_path(study, results)
    target = path.parent / "recipes"
    recipes = _recipes(study)
    if all(recipe.parent.resolve() != target.resolve() for recipe in recipes):
        shutil.rmtree(
            target, ignore_errors=True
        )  # what else lies there would take the place of the repository's
    for recipe in recipes:
        copy_file(recipe, target / recipe.name)
    write_text(path, _written(study, selection))
    return path


def is_current(study: Study, results: Path) -> bool:
    """Say whether the study of the final runs is the one that follows from study and selection."""
    assert study.trials is not None
    path = selected_path(study, results)
    try:
        selection = Selection.read(path.parent / FILE)
        found = read_document(path).data
        copied = {each.name: each.read_bytes() for each in path.parent.glob("recipes/*.yaml")}
        recipes = {each.name: each.read_bytes() for each in _recipes(study)}
    except (OSError, ConfigError, RunError):
        return False
    chosen = [
        (each.block, each.dataset, each.batch_size, each.loss, each.trials)
        for each in selection.choices
    ]
    asked = [(block.name, *rest) for block, *rest in study.trials.choices]
    if chosen != asked or copied != recipes:
        return False
    return bool(found == yaml.safe_load(_written(study, selection)))


def _recipes(study: Study) -> list[Path]:
    assert study.trials is not None
    return recipes_beside({block.recipe_name for block in study.trials.blocks}, study.path)


def _written(study: Study, selection: Selection) -> str:
    text = yaml.safe_dump(final_study(study, selection), sort_keys=False, width=100)
    return f"# Final runs with the settings of {FILE}; written by 'select'.\n{text}"


def final_study(study: Study, selection: Selection) -> dict[str, Any]:
    """Return the content of the study file of the final runs."""
    trials = study.trials
    assert trials is not None
    variants = {
        loss.label: {"loss": loss.name, **{key: loss.params[key] for key in loss.own}}
        for block in trials.blocks
        for loss in block.losses
        if loss.label != loss.name
    }
    return {
        "study": f"{study.name}{SUFFIX}",
        "title": study.title,
        "question": study.question,
        "seeds": list(trials.final_seeds),
        "losses": variants,
        "blocks": [
            _block(block, choice)
            for block in trials.blocks
            for choice in selection.choices
            if choice.block == block.name
            and choice.dataset in [dataset.label for dataset in block.datasets]
        ],
        "metrics": list(study.metrics),
        "comparison": asdict(study.comparison) | {"ablation": []},
        "tables": study.tables and list(study.tables),
        "figures": study.figures and list(study.figures),
        "references": {"trials": study.name, "field": study.references.field},
        "resources": asdict(study.resources),
    }


def _block(block: Block, choice: Choice) -> dict[str, Any]:
    (dataset,) = (each for each in block.datasets if each.label == choice.dataset)
    optimizer = {"lr": block.recipe.optimizer.lr, **choice.override.get("optimizer", {})}
    return {
        "name": f"{choice.dataset}.{choice.loss}.bs{choice.batch_size}.{choice.option}",
        "datasets": [asdict(dataset)],
        "recipe": block.recipe_name,
        "losses": [choice.loss],
        "batch_sizes": [choice.batch_size],
        "option": "~".join((*block.setting.options, choice.option)),
        "override": {**choice.override, "optimizer": optimizer},
        **({"resources": asdict(block.resources)} if block.resources else {}),
    }
