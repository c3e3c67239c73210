"""Registries: a decorated class in a file of its own is all that a new component needs.

A registry finds its entries by importing every module of its package, then every ``*.py`` file of
the folders named in the environment variable ``BENCHMARK_PLUGINS`` (separated like ``PATH``).
"""

import importlib
import importlib.util
import os
import pkgutil
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from benchmark.core.environment import PLUGINS
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.plugin_errors import file_of, in_words, line_in, raise_named
from benchmark.core.sound_options import config_problems

T = TypeVar("T")
NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")  # may become the name of a folder
MAX_LETTERS = 200  # of a text that is shown to people


@dataclass(frozen=True)
class Entry:
    """One registered component: its name, class or function, and the facts shown to people."""

    name: str
    target: Any
    display: str
    facts: dict[str, Any] = field(default_factory=dict)


class Registry:
    """Named components of one kind, found in ``package`` and in plugin folders.

    ``facts``: what an entry may say of itself, with the defaults.
    """

    def __init__(self, kind: str, package: str, facts: Mapping[str, Any] | None = None):
        self.kind = kind
        self.package = package
        self.facts = dict(facts or {})
        self._entries: dict[str, Entry] = {}
        self._imports: dict[str, Any] = {}  # by name, the import that has registered it
        self._discovered = False

    def register(self, name: str, *, display: str | None = None, **facts: Any) -> Callable[[T], T]:
        """Return a decorator that files its target under ``name``.

        A second use of a name, or a fact that the registry does not know or that is of another
        type than its default, is an error.
        """
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{self.kind} registry",
                [f"{name!r} cannot be a name; allowed: up to 80 letters, digits and _ . + -"],
            )
        told = facts if display is None else {"display": display, **facts}
        if wrong := list(self._wrong_facts(told)):
            raise ConfigError(f"{self.kind} '{name}'", wrong)

        def decorate(target: T) -> T:
            if not callable(target):
                words = f"'{name}' is {reprlib.repr(target)}; register a class or a function"
                raise ConfigError(f"{self.kind} registry", [words])
            known, module = self._entries.get(name), getattr(target, "__module__", "")
            # a module has a specification for each import, so that a reload may register again
            imported = getattr(sys.modules.get(module), "__spec__", None)
            if known is not None and known.target.__module__ != module:
                self._refuse_second(name, f"in {known.target.__module__} and {module}")
            if known is not None and imported is not None and imported is self._imports[name]:
                self._refuse_second(name, f"by two classes or functions of {imported.origin}")
            self._imports[name] = imported
            self._entries[name] = Entry(name, target, display or name, {**self.facts, **facts})
            return target

        return decorate

    def _wrong_facts(self, told: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong with facts, in words."""
        known = {"display": "", **self.facts}
        for fact, value in sorted(told.items()):
            shown = f"{fact} is {reprlib.repr(value)}"
            if fact not in known:
                yield unknown_name("fact", fact, known)
            elif type(value) is not (kind := type(known[fact])):
                yield f"{shown} (allowed: a {kind.__name__})"
            elif isinstance(value, tuple) and not all(isinstance(each, str) for each in value):
                yield f"{shown} (allowed: a tuple of texts)"
            elif isinstance(value, str) and not (value.isprintable() and len(value) <= MAX_LETTERS):
                yield f"{shown} (allowed: {MAX_LETTERS} letters of a line)"

    def _refuse_second(self, name: str, where: str) -> NoReturn:
        words = f"'{name}' is registered twice: {where}; give one of them another name"
        raise ConfigError(f"{self.kind} registry", [words])

    def __getitem__(self, name: str) -> Entry:
        self._discover()
        if name not in self._entries:
            raise ConfigError(
                f"{self.kind} registry", [unknown_name(self.kind, name, self._entries)]
            )
        return self._entries[name]

    def __iter__(self) -> Iterator[Entry]:
        self._discover()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def names(self) -> list[str]:
        """Return all registered names in alphabetical order."""
        return [entry.name for entry in self]

    def words_of(self, target: Any) -> str:
        """Return what a message calls a registered class: kind, name, and a plugin's file."""
        names = (entry.name for entry in self._entries.values() if entry.target is target)
        file = file_of(target)
        words = f"{self.kind} '{next(names, getattr(target, '__name__', ''))}'"
        return words if file is None else f"{words} ({file})"

    def raise_named(self, error: BaseException, target: Any) -> NoReturn:
        """Raise again what the class ``target`` of a plugin raised, with its name and file."""
        raise_named(error, self.words_of(target), target)

    def plugin_problems(self, base: type, reserved: Collection[str] = ()) -> list[str]:
        """Return what is wrong with the classes of plugins before anything is made of them.

        Each is derived from ``base``, and its Config has options that can be used, under other
        names than those ``reserved``.
        """
        found = []
        for target in (entry.target for entry in self if file_of(entry.target)):
            if isinstance(target, type) and issubclass(target, base):
                lacking = ", ".join(sorted(getattr(target, "__abstractmethods__", ())))
                wrong = [f"it lacks {lacking}; define it"] if lacking else []
                wrong += config_problems(getattr(target, "Config", None), reserved)
            else:
                wrong = [f"it is no class derived from {base.__name__}; derive it"]
            found += [f"{self.words_of(target)}: {problem}" for problem in wrong]
        return found

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        for path in plugin_files():
            import_plugin(path)


def plugin_folders() -> list[Path]:
    """Return the folders named in ``BENCHMARK_PLUGINS``; raise ConfigError for a missing one."""
    folders = [Path(part) for part in PLUGINS.value().split(os.pathsep) if part]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise ConfigError(
            f"environment variable {PLUGINS.name}",
            [f"no such folder: {path}; name existing folders or unset it" for path in missing],
        )
    return folders


def plugin_files() -> list[Path]:
    """Return the Python files of all plugin folders, in a fixed order.

    Raise ConfigError for two of one name: as modules they would be one.
    """
    found: dict[str, Path] = {}
    for folder in plugin_folders():
        # glob finds what other systems leave behind as well, such as ._mine.py
        paths = (path for path in folder.glob("[!.]*.py") if path.is_file())
        for path in sorted(paths):
            first = found.setdefault(path.stem, path)
            if first.resolve() != path.resolve():
                words = f"'{path.name}' is there twice: {first} and {path}; rename one"
                raise ConfigError(f"environment variable {PLUGINS.name}", [words])
    return list(found.values())


def data_folders(package: Path, marker: str) -> dict[str, Path]:
    """Return by name the folders with a file ``marker``, in ``package`` and plugin folders."""
    found: dict[str, Path] = {}
    for parent in (package, *plugin_folders()):
        for path in sorted(parent.glob(f"*/{marker}")):
            if path.parent.name in found:
                first = found[path.parent.name]
                words = f"'{path.parent.name}' is there twice: {first} and {path.parent}"
                raise ConfigError(f"folders with {marker}", [f"{words}; rename one"])
            found[path.parent.name] = path.parent
    return found


def registered_names(registry: str, folder: str) -> tuple[str, ...]:
    """Return the names that files of a folder of the package, and plugins, give to ``registry``.

    ``registry`` is the variable, such as ``TABLES``. The files are read as text: importing them
    would take seconds and turn the order of the packages round.
    """
    files = [*(Path(__file__).parents[1] / folder).glob("*.py"), *plugin_files()]
    pattern = re.compile(rf"""^@?{registry}\.register\(\s*["']([^"']+)["']""", re.MULTILINE)
    return tuple(
        sorted(
            name
            for file in files
            for name in pattern.findall(file.read_text("utf-8", errors="replace"))
        )
    )


def import_plugin(path: Path) -> None:
    """Import one plugin file once, whichever registry asks first.

    Raise ConfigError, with the line, for one that cannot be imported.
    """
    name = f"benchmark_plugin_{path.stem}"
    if name in sys.modules:
        return
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    before = os.getcwd(), PLUGINS.value()
    assert spec is not None  # it has a loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
    except ConfigError as error:
        del sys.modules[name]  # or the next registry would take what is there for all
        problems = [f"{error.source}: {problem}" for problem in error.problems]
        raise ConfigError(f"plugin {path}", problems) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        words = f"{in_words(error)}{line_in(str(path), error)}; correct that file"
        raise ConfigError(f"plugin {path}", [f"cannot be imported: {words}"]) from error
    if (os.getcwd(), PLUGINS.value()) != before:
        os.chdir(before[0])
        os.environ[PLUGINS.name] = before[1]
        del sys.modules[name]
        words = f"changes the working directory or {PLUGINS.name} when it is imported"
        raise ConfigError(f"plugin {path}", [f"{words}; leave both as they are"])
