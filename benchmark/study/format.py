"""The format of study and recipe files: dataclasses, and the JSON Schemas written from them.

``python -m benchmark validate --write-schemas`` writes these to ``workflow/schemas``, for editors.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.cells import SEPARATOR
from benchmark.core.options import option, schema_of
from benchmark.core.recipe import Precision, Recipe

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
# Labels become folder names; "~" is kept for options and "/" for folders.
LABEL = "^[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}$"
OPTIONS = "^[A-Za-z0-9][A-Za-z0-9_.+-]*(~[A-Za-z0-9][A-Za-z0-9_.+-]*)*$"
SOME = {"minItems": 1}
DISTINCT = {"minItems": 1, "uniqueItems": True}
SEEDS = {**DISTINCT, "items": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}}
SIZE = {"type": ["integer", "string"], "minimum": 2, "maximum": 1_000_000, "pattern": "^all$"}
SIZES = {**DISTINCT, "items": SIZE}
NAMED_LOSS = {
    "type": "object",
    "required": ["loss"],
    "properties": {"loss": {"type": "string", "description": "registry name of the loss"}},
}


@dataclass(frozen=True, kw_only=True)
class DatasetFile:
    """A dataset with parameters."""

    name: str = option(help="registry name")
    label: str | None = option(
        None, help="name in paths and tables; null: the registry's", schema={"pattern": LABEL}
    )
    params: dict[str, Any] = option({}, help="parameters of the dataset")

    @property
    def key(self) -> str:
        """The name in paths and tables."""
        return self.label or self.name


@dataclass(frozen=True)
class Resources:
    """What the scheduler sets aside for one run; no part of its specification."""

    gpus: int = option(0, at_least=0, at_most=1, help="GPUs")
    mem_mb: int = option(2000, at_least=1, at_most=10**9, help="memory, MB")
    minutes: int = option(60, at_least=1, at_most=10**7, help="longest run time, minutes")


PARTIAL_RESOURCES = schema_of(Resources)


@dataclass(frozen=True, kw_only=True)
class BlockFile:
    """One block: the product of datasets, losses, batch sizes and seeds, under one recipe."""

    name: str = option(help="name of the block", schema={"pattern": LABEL})
    datasets: tuple[str | DatasetFile, ...] = option(
        help="registry names, or {name, label, params}", schema=SOME
    )
    recipe: str | dict[str, str] = option(
        help="name of a file in recipes/, or {dataset label: name}",
        schema={
            "minProperties": 1,
            "pattern": LABEL,
            "additionalProperties": {"type": "string", "pattern": LABEL},
        },
    )
    losses: tuple[str, ...] = option(help="registry names or labels of variants", schema=DISTINCT)
    batch_sizes: tuple[int | str, ...] = option(help="batch sizes, or all", schema=SIZES)
    seeds: tuple[int, ...] | None = option(None, help="instead of the study's", schema=SEEDS)
    metrics: tuple[str, ...] | None = option(
        None, help="which of the study's metrics this block gives; null: all", schema=DISTINCT
    )
    resources: dict[str, int] = option(
        {}, help="what one run needs, where it differs from the study's", schema=PARTIAL_RESOURCES
    )
    override: dict[str, Any] = option(
        {}, help="partial recipe laid over the block's; needs an option"
    )
    noise_square: int | None = option(
        None, at_least=3, at_most=100, help="k: k x k runs that cross sources of noise, not seeds"
    )
    # last, because it hides the function of the same name
    option: str | None = option(
        None,
        help="option of the recipe, or a name for the override; becomes '~name' in the setting; "
        "join several by ~",
        schema={"pattern": OPTIONS, "maxLength": 120},
    )

    @property
    def option_names(self) -> tuple[str, ...]:
        """The named options, one by one."""
        return tuple(self.option.split(SEPARATOR)) if self.option else ()

    @property
    def entries(self) -> tuple[DatasetFile, ...]:
        """The datasets in their long form."""
        return tuple(
            DatasetFile(name=entry) if isinstance(entry, str) else entry for entry in self.datasets
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each dataset."""
        return tuple(entry.key for entry in self.entries)

    def recipes(self) -> dict[str, list[DatasetFile]]:
        """Return the names of the block's recipes, each with its datasets."""
        if isinstance(self.recipe, str):
            return {self.recipe: list(self.entries)} if self.recipe else {}
        result: dict[str, list[DatasetFile]] = {}
        for entry in self.entries:
            if name := self.recipe.get(entry.key):
                result.setdefault(name, []).append(entry)
        return result


@dataclass(frozen=True)
class Comparison:
    """The comparisons fixed before the runs."""

    baseline: str = option(help="the loss every other is tested against")
    ablation: tuple[str, ...] = option(
        (), help="losses of the ablation, from simplest to complete", schema={"uniqueItems": True}
    )
    # what a test can see is searched for, which takes minutes far below 0.001
    alpha: float = option(0.05, at_least=0.001, at_most=0.5, help="family-wise error rate")


@dataclass(frozen=True)
class References:
    """What results are judged against."""

    published: tuple[str, ...] = option((), help="published tables", schema={"uniqueItems": True})
    frozen: str | None = option(None, help="path of frozen raw runs, from the repository root")
    trials: str | None = option(
        None, help="study whose trials chose these settings", schema={"pattern": LABEL}
    )
    field: str | None = option(
        None, help="folder of frozen trials and final runs of other losses, which join the tables"
    )


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Equal chances: every loss gets the same number of trials, then runs with its best setting."""

    trials: tuple[int, ...] = option(
        help="numbers of trials: the largest is made; the best of the first 1, 4, ... runs again",
        schema={**DISTINCT, "items": {"type": "integer", "minimum": 1, "maximum": 99}},
    )
    folds: int = option(
        2, at_least=2, at_most=20, help="parts of the training classes, each held out in turn"
    )
    final_seeds: int = option(
        5, at_least=2, at_most=1000, help="seeds of the final runs, other than those of the trials"
    )
    instead: dict[str, str] = option(
        {},
        help="dataset that may take the place of the study's (--config dataset=) -> its recipe",
        schema={"additionalProperties": {"type": "string", "pattern": LABEL}},
    )
    instead_resources: dict[str, int] = option(
        {}, help="what one run needs there, where it differs", schema=PARTIAL_RESOURCES
    )


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The top level of ``workflow/config/<study>.yaml``."""

    study: str = option(help="name of the study; equals the file name", schema={"pattern": LABEL})
    title: str = option(help="one line")
    question: str = option("", help="what is asked")
    seeds: tuple[int, ...] = option(
        help="seeds of every block that names none of its own", schema=SEEDS
    )
    looks: tuple[int, ...] = option(
        (),
        help="numbers of seeds after which verdicts are read, rising to all seeds; 'add-seeds' "
        "goes on to the next; none means one look at all of them",
        schema={"uniqueItems": True, "items": {"type": "integer", "minimum": 2}},
    )
    losses: dict[str, dict[str, Any]] = option(
        {},
        help="named variants: label -> {loss: registry name, hyperparameters}",
        schema={"propertyNames": {"pattern": LABEL}, "additionalProperties": NAMED_LOSS},
    )
    blocks: tuple[BlockFile, ...] = option(help="parts of the grid", schema=SOME)
    metrics: tuple[str, ...] = option(
        help="metrics of the tables, the headline metric first", schema=DISTINCT
    )
    comparison: Comparison = option(help="what is tested against what")
    tables: tuple[str, ...] | None = option(
        None, help="names of tables; null means all", schema={"uniqueItems": True}
    )
    figures: tuple[str, ...] | None = option(
        None, help="names of figures; null means all", schema={"uniqueItems": True}
    )
    references: References = option(References(), help="what the results are judged against")
    rules: Rules | None = option(
        None, help="the same number of trials for every loss; null: as the recipes say"
    )
    resources: Resources = option(Resources(), help="what one run needs")


LOSSES: dict[str, Any] = {"additionalProperties": {"type": "object"}}


def _partial_recipe() -> dict[str, Any]:
    """Return the schema of a part of a recipe, where what is left out stays as it is."""
    sections = {
        name: {
            **section,
            "required": [],
            "properties": {
                key: {word: value for word, value in part.items() if word != "default"}
                for key, part in section["properties"].items()
            },
        }
        for name, section in schema_of(Recipe)["properties"].items()
    }
    losses = {"type": "object", **LOSSES}
    return {
        "type": "object",
        "properties": {**sections, "losses": losses},
        "additionalProperties": False,
    }


@dataclass(frozen=True, kw_only=True)
class RecipeKeys:
    """What a recipe file holds besides the sections of a recipe."""

    label: str = option(help="backbone label of paths and tables", schema={"pattern": LABEL})
    extends: str | None = option(
        None, help="name of the recipe that this one is laid over", schema={"pattern": LABEL}
    )
    source: str = option("", help="where the settings come from")
    sources: dict[str, str] = option(
        {},
        help="place in the recipe (optimizer.lr, or a whole section) -> where its value comes from",
        schema={"additionalProperties": {"type": "string", "minLength": 1}},
    )
    resources: dict[str, int] = option(
        {}, help="what one run needs, where it differs from the study's", schema=PARTIAL_RESOURCES
    )
    losses: dict[str, dict[str, Any]] = option(
        {},
        help="hyperparameters of losses under this recipe: {registry name: {hyperparameter: "
        "value}}",
        schema=LOSSES,
    )
    loss_precision: dict[str, Precision] = option(
        {},
        help="losses that train in a precision of their own: {registry name: precision}",
    )
    options: dict[str, dict[str, Any]] = option(
        {},
        help="named partial recipes that a block asks for with 'option'",
        schema={"propertyNames": {"pattern": LABEL}, "additionalProperties": _partial_recipe()},
    )


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file."""
    return _titled("Study", schema_of(StudyFile))


def recipe_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe file: the recipe's sections, and the keys of the file."""
    keys, recipe = schema_of(RecipeKeys), schema_of(Recipe)
    properties = {**keys["properties"], **recipe["properties"]}
    required = [*keys["required"], *recipe["required"]]
    return _titled("Recipe", {**recipe, "properties": properties, "required": required})


def schema_files() -> dict[Path, str]:
    """Return the text of each committed schema by its path."""
    schemas = {"study.schema.json": study_schema(), "recipe.schema.json": recipe_file_schema()}
    return {SCHEMAS / name: json.dumps(schema, indent=2) + "\n" for name, schema in schemas.items()}


def _titled(title: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
