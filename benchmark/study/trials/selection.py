"""What was chosen by the trials (``selection.json``), and the study file of the final runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.files import begin_folder, copy_file, write_json, write_text
from benchmark.core.record_files import read_record
from benchmark.core.records import SCHEMA
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


def selected_path(study: Study, results: Path) -> Path:
    """Return where the study file of the final runs lies; its name is the study's with a suffix."""
    return study.folder(results) / f"{study.name}{SUFFIX}.yaml"


def write_selected(study: Study, choices: list[Choice], results: Path) -> list[Path]:
    """Write the selection, and the study file of the final runs beside it; return their paths.

    Its recipes that lie beside the study are copied, so that the file stands by itself.
    """
    path, recipes = selected_path(study, results), _recipes(study)
    target = path.parent / "recipes"
    if all(recipe.parent.resolve() != target.resolve() for recipe in recipes):
        begin_folder(target)  # what else lies there would take the place of the repository's
    for recipe in recipes:
        copy_file(recipe, target / recipe.name)
    selection = Selection(SCHEMA, study.name, study.metrics[0], choices)
    write_json(path.parent / FILE, asdict(selection))
    write_text(path, _written(study, choices))
    return [path.parent / FILE, path]


def is_current(study: Study, results: Path) -> bool:
    """Say whether the study of the final runs is the one that follows from study and selection."""
    path = selected_path(study, results)
    if not (path.is_file() and (path.parent / FILE).is_file()):
        return False
    assert study.trials is not None
    choices = read_record(Selection, path.parent / FILE, "a selection of settings").choices
    chosen = [(of.block, of.dataset, of.batch_size, of.loss, of.trials) for of in choices]
    asked = [(block.name, *rest) for block, *rest in study.trials.choices]
    copied = {each.name: each.read_bytes() for each in path.parent.glob("recipes/*.yaml")}
    return (
        chosen == asked
        and copied == {each.name: each.read_bytes() for each in _recipes(study)}
        # the order of an override's keys is that of a file with sorted ones
        and yaml.safe_load(path.read_bytes()) == yaml.safe_load(_written(study, choices))
    )


def _recipes(study: Study) -> list[Path]:
    assert study.trials is not None
    return recipes_beside({block.recipe_name for block in study.trials.blocks}, study.path)


def _written(study: Study, choices: list[Choice]) -> str:
    text = yaml.safe_dump(final_study(study, choices), sort_keys=False, width=100)
    return f"# Final runs with the settings of {FILE}; written by 'select'.\n{text}"


def final_study(study: Study, choices: list[Choice]) -> dict[str, Any]:
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
            for choice in choices
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
