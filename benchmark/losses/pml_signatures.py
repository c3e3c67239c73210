"""What pytorch-metric-learning takes: schemas and objects from names and parameters.

A part of the library is named by its class: ``{class: LpDistance, params: {power: 2}}``. Parts of
parts are given in the same way, for example a distance among the ``params`` of a loss.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

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
    """Return the JSON Schema of ``{class, params}`` for a module of the library.

    It has one rule for each class: which parameters it takes, or why it is refused.
    """
    rules = []
    for name, target in classes(module).items():
        then: dict[str, Any] = {"properties": {"params": params_schema(target)}}
        if then["properties"]["params"]["required"]:
            then["required"] = ["params"]
        if name in REFUSED:
            message = f"'{name}' is refused: {REFUSED[name]}"
            then = {"properties": {"class": {"not": {}, "message": message}}}
        condition = {"properties": {"class": {"const": name}}, "required": ["class"]}
        rules.append({"if": condition, "then": then})
    return {
        "type": "object",
        "properties": {
            "class": {"enum": list(classes(module)), "description": help},
            "params": {"type": "object", "default": {}, "description": "parameters of the class"},
        },
        "required": ["class"],
        "additionalProperties": False,
        "allOf": rules,
    }


def params_schema(target: type) -> dict[str, Any]:
    """Return the JSON Schema of the parameters of a class, but for those that training supplies."""
    properties, required = {}, []
    for name, parameter in parameters_of(target).items():
        if name in UNWRITABLE or name in supplied_to(target):
            continue
        default = parameter.default
        if name in PARTS:  # parts of parts are checked by their own class, one level deep
            inside = {"class": {"enum": list(classes(PARTS[name]))}, "params": {"type": "object"}}
            properties[name] = {
                "type": "object",
                "properties": inside,
                "required": ["class"],
                "additionalProperties": False,
            }
        elif isinstance(default, bool):
            properties[name] = {"type": "boolean"}
        elif isinstance(default, (int, float)):
            properties[name] = {"type": "number"}
        else:
            properties[name] = {"type": ["string", "integer"]} if isinstance(default, str) else {}
        if default is inspect._empty and name not in PARTS:
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def construct(module: str, part: Mapping[str, Any], **supplied: Any) -> Any:
    """Return the object of ``{class, params}``; ``supplied`` are further arguments."""
    params = {
        name: construct(PARTS[name], value) if name in PARTS else value
        for name, value in part.get("params", {}).items()
    }
    return classes(module)[part["class"]](**params, **supplied)
