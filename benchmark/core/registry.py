"""Registries: a new component needs only a decorated class in a file of its own.

A registry finds its entries by importing every module of its package, then every ``*.py`` file of
the folders named in the environment variable ``BENCHMARK_PLUGINS`` (separated like ``PATH``), and
the modules that installed packages name as entry points of the group ``ENTRY_POINTS``.
"""

import importlib
import importlib.util
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from benchmark.core.environment import PLUGINS, value_of
from benchmark.core.errors import ConfigError, not_ended_by_others, unknown_name

ENTRY_POINTS = "ranking_loss_benchmark.plugins"
PLUGIN = "benchmark_plugin_"  # begins the name of the module of a plugin's file
T = TypeVar("T")


@dataclass(frozen=True)
class RegistryEntry:
    """One registered component: its name, class or function, and the facts shown to people."""

    name: str
    target: Any
    display: str
    facts: dict[str, Any] = field(default_factory=dict)


_REGISTRIES: dict[str, "Registry"] = {}  # by kind, of imported packages


class Registry:
    """Named components of one kind, found in ``package`` and in plugin folders.

    ``facts`` has the names of the facts of an entry, with defaults.
    """

    def __init__(self, kind: str, package: str, facts: Mapping[str, Any] | None = None):
        self.kind = kind
        self.package = package
        self.facts = dict(facts or {})
        self._entries: dict[str, RegistryEntry] = {}
        self._discovered = False
        _REGISTRIES[kind] = self

    def register(self, name: str, *, display: str | None = None, **facts: Any) -> Callable[[T], T]:
        """Return a decorator that registers its target under ``name``."""

        def decorate(target: T) -> T:
            known = {**self.facts, **facts}
            self._entries[name] = RegistryEntry(name, target, display or name, known)
            return target

        return decorate

    def __getitem__(self, name: str) -> RegistryEntry:
        self._discover()
        if name not in self._entries:
            raise ConfigError(
                f"{self.kind} registry", [unknown_name(self.kind, name, self._entries)]
            )
        return self._entries[name]

    def __iter__(self) -> Iterator[RegistryEntry]:
        self._discover()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def names(self) -> list[str]:
        """Return all registered names in alphabetical order."""
        return [entry.name for entry in self]

    def of_plugins(self) -> list[RegistryEntry]:
        """Return the entries of plugins; the package itself is not imported."""
        import_plugins()
        inside = f"{self.package}."
        return [
            entry
            for entry in self._entries.values()
            if not entry.target.__module__.startswith(inside)
        ]

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        import_plugins()


def plugin_folders() -> list[Path]:
    """Return the folders named in ``BENCHMARK_PLUGINS``; raise ConfigError for a missing one."""
    folders = [Path(path) for path in value_of(PLUGINS).split(os.pathsep) if path]
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing:
        raise ConfigError(
            f"environment variable {PLUGINS}",
            [f"no such folder: {folder}; name existing folders or unset it" for folder in missing],
        )
    return folders


def _files_of_folders() -> list[Path]:
    return [path for folder in plugin_folders() for path in sorted(folder.glob("[!.]*.py"))]


@cache
def _files_of_packages() -> list[Path]:
    specs = (importlib.util.find_spec(point.module) for point in entry_points(group=ENTRY_POINTS))
    return [Path(spec.origin) for spec in specs if spec and spec.origin]


def plugin_files() -> list[Path]:
    """Return the Python files of all plugin folders and of installed plugins, in a fixed order."""
    return _files_of_folders() + _files_of_packages()


def import_plugins() -> None:
    """Import all plugins, each once."""
    for path in _files_of_folders():
        import_plugin(path)
    _import_packages()


@cache
def _import_packages() -> None:
    with not_ended_by_others():
        for point in entry_points(group=ENTRY_POINTS):
            point.load()


def import_plugin(path: Path) -> None:
    """Import one plugin file once; raise ConfigError, after the traceback, if it fails."""
    name = f"{PLUGIN}{path.stem}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # of a Python file
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    with not_ended_by_others():
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            traceback.print_exc()
            message = "it cannot be imported; the lines above say why"
            raise ConfigError(f"plugin {path}", [message]) from error


def data_folders(package: Path, marker: str) -> dict[str, Path]:
    """Return by name the folders with a file ``marker``, in ``package`` and plugin folders."""
    folders: dict[str, Path] = {}
    for parent in (package, *plugin_folders()):
        for path in sorted(parent.glob(f"*/{marker}")):
            if path.parent.name in folders:
                first = folders[path.parent.name]
                message = f"'{path.parent.name}' is there twice: {first} and {path.parent}"
                raise ConfigError(f"folders with {marker}", [f"{message}; rename one"])
            folders[path.parent.name] = path.parent
    return folders


def names_of_parts(kind: str) -> list[str]:
    """Return the names of all tables or figures (``kind``) of the report and of plugins.

    The import of the report takes seconds. So its names are in a file that ``make names`` writes.
    """
    names = json.loads(Path(__file__).with_name("parts.json").read_text("utf-8"))[kind]
    import_plugins()
    registry = _REGISTRIES.get(kind)
    plugins = registry.of_plugins() if registry else []
    return sorted({*names, *(entry.name for entry in plugins)})
