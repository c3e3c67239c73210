"""What of pytorch-metric-learning a study can name, without importing it, which takes seconds.

``pml_classes.json`` has the classes of each module; ``make names`` writes it. Of losses and miners
it has the parameters that YAML can give, the ``required`` ones among them, those ``supplied`` by
training, and whether a loss takes ``references``; of parts of parts nothing more.
"""

import json
from collections.abc import Mapping
from dataclasses import make_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.core.errors import Problem, unknown_name
from benchmark.core.options import option, options, problems

_FILE = Path(__file__).with_name("pml_classes.json")
CLASSES: dict[str, dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))["modules"]
KINDS: dict[str, Any] = {"flag": bool, "number": float, "word": str | int, "any": Any}
# Parameters that are parts themselves, and the modules of the library that have their classes.
PARTS = {
    "distance": "distances",
    "reducer": "reducers",
    "embedding_regularizer": "regularizers",
    "weight_regularizer": "regularizers",
}
# Classes that are not what their name says here, with what to do instead.
REFUSED = {
    "SmoothAPLoss": "version 2.9.0 gives 0.71 instead of 0 for perfect embeddings (96 classes of "
    "four), with a gradient of another function; use the loss smooth_ap",
    "CrossBatchMemory": "a memory belongs to the recipe: set memory.size there",
    "MultipleLosses": "it combines other losses; write a composite, as benchmark/losses/roadmap.py",
    "SelfSupervisedLoss": "it compares two views of an image, which this training does not make",
    "VICRegLoss": "it compares two views of an image, which this training does not make",
    "ManifoldLoss": "it takes no labels: it groups the images by itself",
    "GenericPairLoss": "it is a base class and computes nothing",
    "BaseMetricLossFunction": "it is a base class and computes nothing",
    "BaseLossWrapper": "it is a base class and computes nothing",
    "BaseMiner": "it is a base class and chooses nothing",
    "EmbeddingsAlreadyPackagedAsTriplets": "batches of this suite are not sorted into triplets",
}


@options
class LibraryPart:
    """A part of pytorch-metric-learning."""

    class_: str = option(alias="class", help="name of the class")
    params: dict[str, Any] = option({}, help="parameters of the class")


def part_problems(module: str, part: Mapping[str, Any], where: str) -> list[Problem]:
    """Return what is wrong with a part ``{class, params}`` that is a class of ``module``.

    That of a loss may have a ``miner`` as well.
    """
    name = part["class"]
    params = part.get("params", {})
    above = f"{where}." if where else ""
    if name not in CLASSES[module]:
        return [Problem(unknown_name("class", name, CLASSES[module]), f"{above}class")]
    if name in REFUSED:
        return [Problem(f"'{name}' is refused: {REFUSED[name]}", f"{above}class")]
    found = []
    if "parameters" in CLASSES[module][name]:
        found = problems(config_of(module, name), params, f"{above}params")
    inside = [
        (PARTS[key], value, f"{above}params.{key}") for key, value in params.items() if key in PARTS
    ]
    if part.get("miner") is not None:
        inside.append(("miners", part["miner"], f"{above}miner"))
    for module_of_part, value, place in inside:
        found += problems(LibraryPart, value, place) or part_problems(module_of_part, value, place)
    return found


@cache
def config_of(module: str, name: str) -> type:
    """Return a Config with the parameters of a class."""
    known = CLASSES[module][name]
    fields = []
    for key, kind in known["parameters"].items():
        given = option() if key in known["required"] else option(None)
        fields.append((key, KINDS[kind], given))
    return make_dataclass("Config", fields, frozen=True, kw_only=True)
