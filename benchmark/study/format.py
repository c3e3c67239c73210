"""The format of study and recipe files: dataclasses, and the JSON Schemas written from them.

``python -m benchmark validate --write-schemas`` writes the schemas to ``workflow/schemas`` (for editors).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.options import option, schema_of
from benchmark.core.recipe import recipe_schema

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
# Labels become folder names; "~" is kept for options and "/" for folders.
LABEL = "^[A-Za-z0-9][A-Za-z0-9_.+-]*$"
OPTIONS = "^[A-Za-z0-9][A-Za-z0-9_.+-]*(~[A-Za-z0-9][A-Za-z0-9_.+-]*)*$"


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The top level of ``workflow/config/<study>.yaml``."""

    study: str = option(help="name of the study; equals the file name")
    title: str = option(help="one line")
    question: str = option("", help="what is asked")
    seeds: list[int] = option(help="seeds of every block that names none of its own")
    losses: dict = option(
        {}, help="named variants: label -> {loss: registry name, hyperparameters}"
    )
    blocks: list[Any] = option(help="parts of the grid")
    metrics: list[str] = option(help="metrics of the tables, the headline metric first")
    comparison: dict = option(help="what is tested against what")
    tables: list[str] | None = option(None, help="names of tables; null means all")
    figures: list[str] | None = option(None, help="names of figures; null means all")
    references: dict = option({}, help="what the results are judged against")
    resources: dict = option({}, help="what one run needs")


@dataclass(frozen=True, kw_only=True)
class BlockFile:
    """One block: the product of datasets, losses, batch sizes and seeds, under one recipe."""

    name: str = option(help="name of the block")
    datasets: list[Any] = option(help="registry names, or {name, label, params}")
    recipe: Any = option(help="name of a file in recipes/, or {dataset label: name}")
    losses: list[str] = option(help="registry names or labels of variants")
    batch_sizes: list[int] = option(help="batch sizes")
    seeds: list[int] | None = option(None, help="instead of the study's")
    metrics: list[str] | None = option(
        None, help="those of the study's metrics that this block gives; null means all"
    )
    resources: dict = option({}, help="what one run needs, where it differs from the study's")
    override: dict = option({}, help="partial recipe laid over the block's; needs an option")
    # last, because it hides the function of the same name
    option: str | None = option(
        None,
        help="option of the recipe, or a name for the override; becomes '~name' in the setting; join several by ~",
    )


@dataclass(frozen=True, kw_only=True)
class DatasetFile:
    """A dataset with parameters."""

    name: str = option(help="registry name")
    label: str | None = option(None, help="name in paths and tables; null means the registry name")
    params: dict = option({}, help="parameters of the dataset")


@dataclass(frozen=True, kw_only=True)
class ComparisonFile:
    """The comparisons fixed before the runs."""

    baseline: str = option(help="the loss every other is tested against")
    ablation: list[str] = option([], help="losses of the ablation, from simplest to complete")
    alpha: float = option(0.05, above=0.0, below=1.0, help="family-wise error rate")


@dataclass(frozen=True, kw_only=True)
class ReferencesFile:
    """What results are judged against."""

    published: list[str] = option([], help="published tables")
    frozen: str | None = option(None, help="path of frozen raw runs, from the repository root")


@dataclass(frozen=True, kw_only=True)
class ResourcesFile:
    """What the scheduler sets aside for one run; no part of its specification."""

    gpus: int = option(0, at_least=0, help="GPUs")
    mem_mb: int = option(2000, at_least=1, help="memory, MB")
    minutes: int = option(60, at_least=1, help="longest run time, minutes")


def study_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a study file."""
    schema = schema_of(StudyFile)
    fields = schema["properties"]
    block = schema_of(BlockFile)
    dataset = {**schema_of(DatasetFile), "type": ["string", "object"]}
    _label(fields["study"], dataset["properties"]["label"], block["properties"]["name"])
    block["properties"]["option"]["pattern"] = OPTIONS
    block["properties"]["recipe"] |= {
        "type": ["string", "object"],
        "minProperties": 1,
        "additionalProperties": {"type": "string"},
    }
    resources = schema_of(ResourcesFile)
    block["properties"]["resources"] |= resources | {"required": []}
    _items(block["properties"]["datasets"], dataset)
    _unique(block["properties"]["losses"])
    _items(block["properties"]["metrics"], {"type": "string"})
    _items(block["properties"]["batch_sizes"], {"type": "integer", "minimum": 2})
    _items(block["properties"]["seeds"], {"type": "integer", "minimum": 0})
    _items(fields["seeds"], {"type": "integer", "minimum": 0})
    _items(fields["blocks"], block)
    _items(fields["metrics"], {"type": "string"})
    for name in ("tables", "figures"):
        _items(fields[name], {"type": "string"}, at_least=0)
    fields["losses"] |= {
        "propertyNames": {"pattern": LABEL},
        "additionalProperties": {
            "type": "object",
            "required": ["loss"],
            "properties": {"loss": {"type": "string", "description": "registry name of the loss"}},
        },
    }
    nested = {
        "comparison": ComparisonFile,
        "references": ReferencesFile,
        "resources": ResourcesFile,
    }
    for name, config in nested.items():
        fields[name] = {**schema_of(config), "description": fields[name]["description"]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Study", **schema}


def recipe_file_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a recipe file: the recipe's sections, and what belongs to the file alone."""
    schema = recipe_schema()
    losses = {
        "type": "object",
        "description": "hyperparameters of losses under this recipe: {registry name: {hyperparameter: value}}",
        "additionalProperties": {"type": "object"},
    }
    partial = {
        name: {
            **section,
            "required": [],
            "properties": _without_defaults(section.get("properties", {})),
        }
        for name, section in schema["properties"].items()
    }
    own = {
        "label": {
            "type": "string",
            "description": "backbone label of paths and tables",
            "pattern": LABEL,
        },
        "extends": {
            "type": "string",
            "description": "name of the recipe that this one is laid over",
        },
        "source": {"type": "string", "description": "where the settings come from"},
        "sources": {
            "type": "object",
            "description": "place in the recipe (optimizer.lr, or a whole section) -> where its value comes from",
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "stand_in": {
            "type": "string",
            "description": "name of the recipe that takes its place on a stand-in dataset",
        },
        "resources": schema_of(ResourcesFile)
        | {"description": "what one run needs, where it differs from the study's"},
        "losses": losses,
        "loss_precision": {
            "type": "object",
            "description": "losses that train in a precision of their own: {registry name: precision}",
            "additionalProperties": {
                "enum": schema["properties"]["training"]["properties"]["precision"]["enum"]
            },
        },
        "options": {
            "type": "object",
            "description": "named partial recipes that a block asks for with 'option'",
            "propertyNames": {"pattern": LABEL},
            "additionalProperties": {
                "type": "object",
                "properties": {**partial, "losses": losses},
                "additionalProperties": False,
            },
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Recipe",
        **schema,
        "properties": {**own, **schema["properties"]},
        "required": ["label", *schema["required"]],
    }


def schema_files() -> dict[Path, str]:
    """Returns the text of each committed schema by its path."""
    schemas = {"study.schema.json": study_schema(), "recipe.schema.json": recipe_file_schema()}
    return {SCHEMAS / name: json.dumps(schema, indent=2) + "\n" for name, schema in schemas.items()}


def _label(*schemas: dict[str, Any]) -> None:
    for schema in schemas:
        schema["pattern"] = LABEL


def _unique(schema: dict[str, Any]) -> None:
    if schema.get("type") == "array":
        schema |= {"minItems": 1, "uniqueItems": True}


def _items(schema: dict[str, Any], items: dict[str, Any], at_least: int = 1) -> None:
    """Turns ``schema`` into a list of ``items``, distinct when plain; an optional list stays optional."""
    optional = "anyOf" in schema
    schema.pop("anyOf", None)
    schema["type"] = ["array", "null"] if optional else "array"
    schema |= {"items": items, "minItems": at_least}
    if "properties" not in items:  # mappings are told apart by their names, with a better message
        schema["uniqueItems"] = True


def _without_defaults(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the properties of a partial section, where what is left out stays as it is."""
    return {
        name: {key: value for key, value in schema.items() if key != "default"}
        for name, schema in properties.items()
    }
