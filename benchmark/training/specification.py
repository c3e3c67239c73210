"""Reading the specification of a run, with all that is wrong with it said at once."""

from __future__ import annotations

from pathlib import Path

from benchmark.errors import ConfigError
from benchmark.options import problems
from benchmark.recipe import recipe_schema
from benchmark.records import RunSpec

_TEXT, _NUMBERS = {"type": "string"}, {"type": "integer"}


def read_spec(path: Path) -> RunSpec:
    """Returns the specification at ``path``. Raises RunError for a file that is none, and ConfigError for one that
    was changed into something that no study would have written; hyperparameters are checked by their component."""
    spec = RunSpec.read(path)
    found = problems(_schema(), vars(spec))
    if found:
        advice = "write it again with 'python -m benchmark specs STUDY', and change the study instead"
        raise ConfigError(str(path), [*found, advice])
    return spec


def _schema() -> dict:
    """Returns the JSON Schema of a specification; in a recipe nothing is left to defaults."""
    recipe = recipe_schema()
    named = {"name": _TEXT, "params": {"type": "object"}}
    return {
        "type": "object",
        "properties": {
            "run_id": _TEXT,
            "setting": _TEXT,
            "dataset": {"type": "object", "properties": named, "required": list(named)},
            "loss": {"type": "object", "properties": {**named, "variant": _TEXT}, "required": [*named, "variant"]},
            "batch_size": {**_NUMBERS, "minimum": 1},
            "seed": _NUMBERS,
            "recipe": {**recipe, "required": list(recipe["properties"])},
        },
    }
