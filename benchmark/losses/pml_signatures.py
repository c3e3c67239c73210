"""What pytorch-metric-learning takes: schemas and objects from names and parameters.

A part of the library is named by its class: ``{class: LpDistance, params: {power: 2}}``. Parts of
parts are given in the same way, for example a distance among the ``params`` of a loss.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from benchmark.core.errors import ConfigError
from benchmark.core.plugin_errors import in_words

# Parameters that are parts themselves, and the modules of the library that have their classes.
PARTS = {
    "distance": "distances",
    "reducer": "reducers",
    "embedding_regularizer": "regularizers",
    "weight_regularizer": "regularizers",
}
# What training knows, and what YAML cannot say.
SUPPLIED = ("num_classes", "embedding_size", "descriptors_dim")
UNWRITABLE = ("weight_init_func", "collect_stats", "mat_based_loss")
# Classes that are not what their name says here, with what to do instead.
REFUSED = {
    "SmoothAPLoss": "version 2.9.0 gives 0.71 instead of 0 for perfect embeddings (96 classes of "
    "four), with a gradient of another function; use the loss smooth_ap",
    "CrossBatchMemory": "a memory belongs to the recipe: set memory.size there",
    "MultipleLosses": "it holds other losses; write a composite, as benchmark/losses/roadmap.py",
    "SelfSupervisedLoss": "it compares two views of an image, which this training does not make",
    "VICRegLoss": "it compares two views of an image, which this training does not make",
    "ManifoldLoss": "it takes no labels: it groups the images by itself",
    "GenericPairLoss": "it is a base class and computes nothing",
    "BaseMetricLossFunction": "it is a base class and computes nothing",
    "BaseLossWrapper": "it is a base class and computes nothing",
    "BaseMiner": "it is a base class and chooses nothing",
    "EmbeddingsAlreadyPackagedAsTriplets": "batches of this suite are not sorted into triplets",
}
# It accepts references, but looks up their labels among those of the batch.
BATCH_ONLY = ("ThresholdConsistentMarginLoss",)


@cache
def classes(module: str) -> dict[str, type]:
    """Return the classes of a module of the library by their names."""
    found = vars(import_module(f"pytorch_metric_learning.{module}")).items()
    return {
        name: value
        for name, value in sorted(found)
        if inspect.isclass(value) and not name.endswith("Mixin")
    }


def parameters_of(target: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class, with those that it hands on to its bases."""
    result: dict[str, inspect.Parameter] = {}
    for base in target.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        own = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        for parameter in own:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                result.setdefault(parameter.name, parameter)
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in own):
            break
    return result


def supplied_to(target: type) -> list[str]:
    """Return the parameters that training supplies: sizes that the class demands."""
    found = parameters_of(target)
    return [name for name in SUPPLIED if name in found and found[name].default is inspect._empty]


def takes_references(target: type) -> bool:
    """Say whether a loss can compare a batch with other embeddings than itself."""
    return target.__name__ not in BATCH_ONLY and "ref_not_supported" not in "".join(
        inspect.getsource(vars(base)["compute_loss"])
        for base in target.__mro__
        if "compute_loss" in vars(base) and base.__name__ != "BaseMetricLossFunction"
    )


def part_schema(module: str, help: str) -> dict[str, Any]:
    """Return the JSON Schema of ``{class, params}`` for a module of the library."""
    properties, rules = part_properties(module, help)
    return {
        "type": "object",
        "properties": properties,
        "required": ["class"],
        "additionalProperties": False,
        "allOf": rules,
    }


def part_properties(module: str, help: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the properties ``class`` and ``params``, and one rule for each class."""
    names = classes(module)
    properties = {
        "class": {"enum": list(names), "description": help},
        "params": {"type": "object", "default": {}, "description": "parameters of the class"},
    }
    rules: list[dict[str, Any]] = []
    for name, target in names.items():
        then: dict[str, Any] = {"params": _params_schema(target)}
        if name in REFUSED:
            then = {"class": {"not": {}, "message": f"'{name}' is refused: {REFUSED[name]}"}}
        rules.append(
            {
                "if": {"properties": {"class": {"const": name}}, "required": ["class"]},
                "then": {"properties": then},
            }
        )
        needed = then.get("params", {}).get("required", [])
        if needed:
            rules[-1]["then"]["required"] = ["params"]
    return properties, rules


def construct(module: str, part: Mapping[str, Any], **supplied: Any) -> Any:
    """Return the object of ``{class, params}``; ``supplied`` are further arguments.

    Raise ConfigError for parameters that the library refuses.
    """
    params = {
        name: construct(PARTS[name], value) if name in PARTS else value
        for name, value in part.get("params", {}).items()
    }
    target = classes(module)[part["class"]]
    try:
        return target(**params, **supplied)
    except Exception as error:
        words = f"pytorch-metric-learning refuses its parameters ({in_words(error)})"
        raise ConfigError(
            part["class"], [f"{words}; see the documentation of this class"]
        ) from error


def _params_schema(target: type) -> dict[str, Any]:
    properties, required = {}, []
    supplied = supplied_to(target)
    for name, parameter in parameters_of(target).items():
        if name in UNWRITABLE or name in supplied:
            continue
        if name in PARTS:
            # parts of parts are checked by their own class, one level deep
            inside = list(classes(PARTS[name]))
            properties[name] = {
                "type": "object",
                "properties": {"class": {"enum": inside}, "params": {"type": "object"}},
                "required": ["class"],
                "additionalProperties": False,
            }
            continue
        properties[name] = _type_of(parameter.default)
        if parameter.default is inspect._empty:
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _type_of(default: Any) -> dict[str, Any]:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, (int, float)):
        return {"type": "number"}
    return {"type": ["string", "integer"]} if isinstance(default, str) else {}
