"""The version of the code that decides a run's numbers: what it does, not how it is written.

The version is a digest of syntax trees, in which docstrings, comments, display names and help texts
have no part: two runs with one code version were computed by the same code, in a checkout or not,
committed or not. Plugins are named apart, in the versions of the runs that use them.
"""

import ast
import functools
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from benchmark import __version__
from benchmark.core.registry import PLUGIN

PACKAGE = Path(__file__).resolve().parents[1]
# What can change a number of a run: the parts that train and evaluate, and the foundations they
# stand on.
DECISIVE = (
    "losses",
    "datasets",
    "input",
    "models",
    "metrics",
    "training",
    "core/options.py",
    "core/recipe.py",
    "core/records.py",
    "core/seeding.py",
)
# Arguments that are words for people, by the name of the function that takes them.
WORDS = {
    "option": {"help"},
    "register": {"display", "paper", "pages"},
    "declare": {"display", "paper"},
}
YAML_WORDS = {"help", "display", "paper", "source"}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def code_version(*modules: str) -> str:
    """Return ``<package version>+<12 hex digits>``, of ``DECISIVE``.

    It ends in ``+<name>-<12 hex digits>`` for each of ``modules``, the names of imported ones, that
    is a plugin's.
    """
    parts = [__version__, version_of(*DECISIVE)]
    for module in sorted(set(modules)):
        if module.partition(".")[0] != PACKAGE.name:
            digest = _digest([(module, Path(f"{sys.modules[module].__file__}"))])
            parts.append(f"{module.removeprefix(PLUGIN)}-{digest}")
    return "+".join(parts)


def mixed(versions: Iterable[str]) -> bool:
    """Say whether versions differ in more than the plugins that they name."""
    parts = [each.split("+") for each in versions]
    plugins = {plugin for each in parts for plugin in each[2:]}
    names = {plugin.rpartition("-")[0] for plugin in plugins}
    return len({(*each[:2],) for each in parts}) > 1 or len(names) < len(plugins)


@functools.cache
def version_of(*parts: str) -> str:
    """Return 12 hex digits: a digest of what some folders and files of the package do."""
    files = []
    for part in parts:
        place = PACKAGE / part
        found = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.yaml")]
        files += [(path.relative_to(PACKAGE).as_posix(), path) for path in sorted(found)]
    return _digest(files)


def meaning(path: Path) -> str:
    """Return the syntax tree of a source file as text, without what is written for people only.

    YAML is read as data, without the same words.
    """
    if path.suffix == ".yaml":
        return json.dumps(_without_words(yaml.safe_load(path.read_text(encoding="utf-8"))))
    parts: list[str] = []
    _walk(ast.parse(path.read_bytes()), parts)
    return "".join(parts)


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_words(each) for key, each in value.items() if key not in YAML_WORDS}
    return value


def _walk(value: object, parts: list[str]) -> None:
    """Add the text of a node, a list of nodes or a constant; empty fields have none.

    The text is not that of ``ast.dump``, which changes from one Python to the next.
    """
    if isinstance(value, ast.AST):
        parts.append(f"({type(value).__name__}")
        hidden: set[str] = set()
        if isinstance(value, ast.Call):
            called = getattr(value.func, "id", None) or getattr(value.func, "attr", None)
            hidden = WORDS.get(str(called), hidden)
        documented = (
            isinstance(value, _WITH_DOCSTRING) and ast.get_docstring(value, clean=False) is not None
        )
        for name, part in ast.iter_fields(value):
            if name == "body" and documented:
                part = part[1:]
            elif name == "keywords" and hidden:
                part = [keyword for keyword in part if keyword.arg not in hidden]
            if part is not None and part != []:
                parts.append(f" {name}=")
                _walk(part, parts)
        parts.append(")")
    elif isinstance(value, list):
        for item in value:
            _walk(item, parts)
    else:
        parts.append(repr(value))


def _digest(files: list[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        digest.update(f"{name}\0{meaning(path)}\0".encode())
    return digest.hexdigest()[:12]
