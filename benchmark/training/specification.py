"""Reading the specification of a run, with all that is wrong with it said at once."""

from __future__ import annotations

from pathlib import Path

from benchmark.core.errors import ConfigError
from benchmark.core.options import problems
from benchmark.core.recipe import recipe_schema
from benchmark.core.records import RunSpec, run_id

_TEXT = {"type": "string"}


def read_spec(path: Path) -> RunSpec:
    """Returns the specification at ``path``. Raises RunError for a file that is none, and ConfigError for one that
    was changed into something that no study would have written; hyperparameters are checked by their component."""
    spec = RunSpec.read(path)
    found = problems(_schema(), vars(spec))
    found += _misnamed(spec, found)
    if found:
        advice = (
            "write it again with 'python -m benchmark specs STUDY', and change the study instead"
        )
        raise ConfigError(str(path), [*found, advice])
    return spec


def _misnamed(spec: RunSpec, found: list[str]) -> list[str]:
    """Returns what is wrong with the name of a run, unless a part of it has a problem of its own."""
    if any(line.startswith(("run_id", "setting", "loss", "batch_size", "seed")) for line in found):
        return []
    label = spec.run_id.partition("/")[0]
    name = run_id(label, spec.setting, spec.loss["variant"], spec.batch_size, spec.seed)
    return (
        []
        if spec.run_id == name
        else [f"run_id  '{spec.run_id}' is not the name of this run, which is '{name}'"]
    )


def _schema() -> dict:
    """Returns the JSON Schema of a specification; in a recipe nothing is left to defaults."""
    recipe = recipe_schema()
    named = {"name": _TEXT, "params": {"type": "object"}}

    def closed(properties: dict) -> dict:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    return {
        "type": "object",
        "properties": {
            "run_id": {
                **_TEXT,
                "pattern": "^[A-Za-z0-9][^/]*/",
                "description": "starts with the dataset's label",
            },
            "setting": _TEXT,
            "dataset": closed(named),
            "loss": closed({**named, "variant": _TEXT}),
            "batch_size": {"type": "integer", "minimum": 1},
            "seed": {"type": "integer", "minimum": 0},
            "recipe": {**recipe, "required": list(recipe["properties"])},
        },
    }
