"""The lists of names that are committed: ``make names`` writes them from what is installed.

Importing timm, pytorch-metric-learning or the report takes seconds, and a study is checked without.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2] / "benchmark"
MODULES = ("losses", "miners", "distances", "reducers", "regularizers")
# What training knows, and what YAML cannot say.
SUPPLIED = ("num_classes", "embedding_size", "descriptors_dim")
UNWRITABLE = ("weight_init_func", "collect_stats", "mat_based_loss")
# It accepts references, but looks up their labels among those of the batch.
BATCH_ONLY = ("ThresholdConsistentMarginLoss",)
KINDS = {bool: "flag", int: "number", float: "number", str: "word"}


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


def takes_references(target: type) -> bool:
    """Say whether a loss can compare a batch with other embeddings than itself."""
    return target.__name__ not in BATCH_ONLY and "ref_not_supported" not in "".join(
        inspect.getsource(vars(base)["compute_loss"])
        for base in target.__mro__
        if "compute_loss" in vars(base) and base.__name__ != "BaseMetricLossFunction"
    )


def facts_of(target: type) -> dict[str, Any]:
    """Return the parameters of a loss or miner, and what training has to know of it."""
    from benchmark.losses.library import PARTS

    found = parameters_of(target)
    demanded = [name for name, each in found.items() if each.default is inspect.Parameter.empty]
    supplied = [name for name in SUPPLIED if name in demanded]
    given = [name for name in found if name not in (*UNWRITABLE, *supplied)]
    return {
        "parameters": {name: KINDS.get(type(found[name].default), "any") for name in given},
        "required": [name for name in given if name in demanded and name not in PARTS],
        "supplied": supplied,
        "references": takes_references(target),
    }


def library() -> dict[str, Any]:
    """Return the classes of pytorch-metric-learning by their modules."""
    modules: dict[str, dict[str, Any]] = {}
    for module in MODULES:
        named = vars(import_module(f"pytorch_metric_learning.{module}")).items()
        modules[module] = {
            name: facts_of(value) if module in ("losses", "miners") else {}
            for name, value in named
            if inspect.isclass(value) and not name.endswith("Mixin")
        }
    return {"version": version("pytorch-metric-learning"), "modules": modules}


def backbones() -> dict[str, Any]:
    """Return the architectures, and the facts of each weight tag with the networks that have it."""
    from benchmark.core.recipe import GOOGLENET, GOOGLENET_WEIGHTS
    from benchmark.models.backbone import facts_of_weights, prepare_torchvision

    prepare_torchvision()
    import timm

    tagged = [name for name in timm.list_models(pretrained=True) if "." in name]
    tagged += [f"{GOOGLENET}.{tag}" for tag in GOOGLENET_WEIGHTS]
    groups: dict[str, dict[str, Any]] = {}
    for name in tagged:
        facts = asdict(facts_of_weights(name))
        groups.setdefault(json.dumps(facts), {**facts, "backbones": []})["backbones"].append(name)
    return {
        "version": version("timm"),
        "architectures": [*timm.list_models(), GOOGLENET],
        "weights": list(groups.values()),
    }


def parts() -> dict[str, list[str]]:
    """Return the tables and figures of the report."""
    from benchmark.report.figures import FIGURES
    from benchmark.report.tables import TABLES

    found = {}
    for registry in (TABLES, FIGURES):
        found[registry.kind] = [
            entry.name for entry in registry if entry.target.__module__.startswith("benchmark.")
        ]
    return found


FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "losses/pml_classes.json": library,
    "core/backbones.json": backbones,
    "core/parts.json": parts,
}


def text_of(file: str) -> str:
    """Return what a file of names has to hold."""
    return json.dumps(FILES[file](), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for each in FILES:
        (PACKAGE / each).write_text(text_of(each), encoding="utf-8")
