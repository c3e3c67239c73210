"""Facts and hyperparameters of all losses, without importing torch.

Validating a study needs names and options only, while importing the losses takes seconds. So the
catalogue is built once, in a process of its own, and kept as JSON. The name of the file is a digest
of all sources it depends on.
"""

import hashlib
import inspect
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, make_dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import annotated_types

from benchmark.core import options, registry
from benchmark.core.environment import cache_folder
from benchmark.core.errors import Problem, unknown_name
from benchmark.core.files import from_child

SOURCES = Path(__file__).parent

Rows = list[list[Any]]  # the options of a Config: name, type, metadata, and default if it has one


@dataclass(frozen=True)
class LossFacts:
    """What a loss declares, and its hyperparameters.

    ``library``: of the loss ``pml``, what ``part_problems`` has to know.
    """

    display: str
    paper: str
    kind: str
    stochastic: bool
    accepts_references: bool
    options: Rows
    library: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def config(self) -> type:
        """A Config with the fields of the loss's own."""
        return config_of(self.options)

    def problems(self, params: Mapping[str, Any], where: str = "") -> list[Problem]:
        """Return what is wrong with hyperparameters."""
        found = options.problems(self.config, params, where)
        if found or not self.library:
            return found
        part = {**options.defaults_of(self.config), **params}
        return part_problems(self.library, "", part, where)

    def takes_references(self, params: Mapping[str, Any]) -> bool:
        """Say whether the loss with these hyperparameters can rank a memory."""
        without = self.library.get("without_references", ())
        return self.accepts_references and params.get("class") not in without


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of pytorch-metric-learning."""

    class_: str = options.option(alias="class", help="name of the class")
    params: dict[str, Any] = options.option({}, help="parameters of the class")


def part_problems(
    library: Mapping[str, Any], kind: str, part: Mapping[str, Any], where: str
) -> list[Problem]:
    """Return what is wrong with a part ``{class, params}`` of pytorch-metric-learning.

    ``library`` has the classes of each kind of part: "" for losses, otherwise the parameter that
    names it. A class has the rows of its parameters, None where they are not known, or the reason
    why it is refused.
    """
    known, name, above = library[kind], part["class"], f"{where}." if where else ""
    if name not in known:
        return [Problem(unknown_name("class", name, known), f"{above}class")]
    if isinstance(known[name], str):
        return [Problem(f"'{name}' is refused: {known[name]}", f"{above}class")]
    params, below = part.get("params", {}), f"{above}params"
    found = [] if known[name] is None else options.problems(config_of(known[name]), params, below)
    inside = {key: (f"{below}.{key}", params[key]) for key in params if key in library}
    if part.get("miner") is not None:
        inside["miner"] = (f"{above}miner", part["miner"])
    for key, (place, value) in inside.items():
        found += options.problems(Part, value, place) or part_problems(library, key, value, place)
    return found


def rows_of(config: type) -> Rows:
    """Return the options of a Config as JSON holds them."""
    hints, defaults = options.hints_of(config), options.defaults_of(config)
    return [
        [item.name, inspect.formatannotation(hints[item.name]), dict(item.metadata)]
        + ([defaults[name]] if name in defaults else [])
        for name, item in options.options_of(config).items()
    ]


def config_of(rows: Rows) -> type:
    """Return a Config with these options."""
    names = {**vars(annotated_types), **vars(typing), "typing": typing}
    kinds = type("Kinds", (), {"__annotations__": {name: kind for name, kind, *_ in rows}})
    hints = typing.get_type_hints(kinds, names, include_extras=True)
    made = [
        (name, hints[name], options.field_of(default[0] if default else MISSING, metadata))
        for name, _, metadata, *default in rows
    ]
    return make_dataclass("Config", made, frozen=True, kw_only=True)


def load_catalogue() -> dict[str, LossFacts]:
    """Return the facts of every loss by its name, sorted.

    The cache lies in the folder of the environment variable BENCHMARK_CACHE (default
    results/cache).
    """
    return dict(_read(cache_folder() / f"losses-{_digest(_sources())}.json"))


@cache  # a study's checks ask a thousand times
def _read(path: Path) -> dict[str, LossFacts]:
    code = "import json; from benchmark.losses.catalogue import build_catalogue as facts\n"
    found = from_child(path, f"{code}print(json.dumps(facts()))", "loss registry")
    return {name: LossFacts(**facts) for name, facts in found.items()}


def build_catalogue() -> dict[str, dict[str, Any]]:
    """Return the facts of the losses of the live registry as plain data; imports torch."""
    from benchmark.losses import LOSSES

    return {
        entry.name: {
            "display": entry.display,
            **entry.facts,
            "options": rows_of(entry.target.Config),
            "library": getattr(entry.target, "library", dict)(),
        }
        for entry in LOSSES
    }


def _sources() -> tuple[tuple[Path, int], ...]:
    """Return the files that the catalogue depends on, and when each was changed last."""
    plugins = ((path, path.stat().st_mtime_ns) for path in registry.plugin_files())
    return (*_own_sources(), *plugins)


@cache  # unlike plugins, they stay as they are while the process runs
def _own_sources() -> tuple[tuple[Path, int], ...]:
    shared = [Path(f"{each.__file__}") for each in (options, registry)]
    files = [*sorted(SOURCES.glob("*.py")), *sorted(SOURCES.glob("*.yaml")), *shared]
    return tuple((path, path.stat().st_mtime_ns) for path in files)


@cache
def _digest(sources: tuple[tuple[Path, int], ...]) -> str:
    digest = hashlib.sha256(version("pytorch-metric-learning").encode())
    for path, _ in sources:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]
