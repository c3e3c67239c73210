"""The version of the code that decides the numbers of a run.

The version is a digest of syntax trees without docstrings, comments, display names and help texts.
Two runs with one code version were computed by the same code, in a checkout or not, committed or
not. The version of a run also names the plugins that the run uses.
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
# The packages and files that can change a number of a run.
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
# Arguments that are texts for people, by the name of the function that takes them.
WORDS = {
    "option": {"help"},
    "register": {"display", "paper", "pages"},
    "declare": {"display", "paper"},
}
YAML_WORDS = {"help", "display", "paper", "source"}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def code_version(*modules: str) -> str:
    """Return ``<package version>+<12 hex digits>``, with a digest of ``DECISIVE``.

    ``+<name>-<12 hex digits>`` is added for each plugin among ``modules``, which are names of
    imported modules.
    """
    versions = [__version__, version_of(*DECISIVE)]
    for module in sorted(set(modules)):
        if module.partition(".")[0] != PACKAGE.name:
            digest = _digest([(module, Path(f"{sys.modules[module].__file__}"))])
            versions.append(f"{module.removeprefix(PLUGIN)}-{digest}")
    return "+".join(versions)


def mixed(versions: Iterable[str]) -> bool:
    """Return whether code versions differ in more than the plugins that they name."""
    suites = set()
    plugins = set()
    for version in versions:
        parts = version.split("+")
        suites.add(tuple(parts[:2]))
        plugins.update(parts[2:])
    names = {plugin.rpartition("-")[0] for plugin in plugins}
    return len(suites) > 1 or len(names) < len(plugins)


@functools.cache
def version_of(*names: str) -> str:
    """Return a digest (12 hex digits) of the code in these folders and files of the package."""
    files = []
    for name in names:
        paths = [PACKAGE / name]
        if paths[0].is_dir():
            paths = sorted([*paths[0].rglob("*.py"), *paths[0].rglob("*.yaml")])
        files += [(path.relative_to(PACKAGE).as_posix(), path) for path in paths]
    return _digest(files)


def meaning(path: Path) -> str:
    """Return the syntax tree of a source file as text, without texts that are for people only.

    Of a YAML file, return the data as text, without such texts.
    """
    if path.suffix == ".yaml":
        return json.dumps(_without_words(yaml.safe_load(path.read_text(encoding="utf-8"))))
    texts: list[str] = []
    _walk(ast.parse(path.read_bytes()), texts)
    return "".join(texts)


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_words(item) for key, item in value.items() if key not in YAML_WORDS}
    return value


def _walk(value: object, texts: list[str]) -> None:
    """Add the text of a node, a list of nodes or a constant; empty fields are left out.

    ``ast.dump`` is not used, because its text changes from one Python version to the next.
    """
    if isinstance(value, ast.AST):
        texts.append(f"({type(value).__name__}")
        hidden: set[str] = set()
        if isinstance(value, ast.Call):
            called = getattr(value.func, "id", None) or getattr(value.func, "attr", None)
            hidden = WORDS.get(str(called), hidden)
        documented = (
            isinstance(value, _WITH_DOCSTRING) and ast.get_docstring(value, clean=False) is not None
        )
        for name, child in ast.iter_fields(value):
            if name == "body" and documented:
                child = child[1:]
            elif name == "keywords" and hidden:
                child = [keyword for keyword in child if keyword.arg not in hidden]
            if child is not None and child != []:
                texts.append(f" {name}=")
                _walk(child, texts)
        texts.append(")")
    elif isinstance(value, list):
        for item in value:
            _walk(item, texts)
    else:
        texts.append(repr(value))


def _digest(files: list[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        digest.update(f"{name}\0{meaning(path)}\0".encode())
    return digest.hexdigest()[:12]
