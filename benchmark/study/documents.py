"""YAML documents that remember the line of every value, so that a problem can be found in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ConfigError, unknown_name


class _Loader(yaml.SafeLoader):
    """The safe loader, reading ``1e-3`` as a number (YAML 1.1 calls it a string)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True)
class Document:
    """A parsed file: its value, and the line (from 1) of each place such as ``blocks.0.losses.2``."""

    path: Path
    data: Any
    lines: dict[str, int]
    problems: tuple[str, ...] = ()

    def where(self, place: str) -> str:
        """Returns ``place`` with its line, or with that of the nearest enclosing value that has one."""
        parts = place.split(".") if place else []
        for length in range(len(parts), -1, -1):
            line = self.lines.get(".".join(parts[:length]))
            if line is not None:
                return f"{place or 'file'} (line {line})"
        return place or "file"


def read_document(path: Path) -> Document:
    """Returns the document at ``path``; raises ConfigError when it is missing or not a YAML mapping."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=_Loader)
        data = yaml.load(text, Loader=_Loader)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [f"is not UTF-8 text: {error}"]) from error
    except yaml.YAMLError as error:
        raise ConfigError(str(path), [f"is not valid YAML: {_one_line(error)}"]) from error
    if not isinstance(data, dict):
        raise ConfigError(
            str(path), ["must be a mapping of keys to values, see docs/architecture.md"]
        )
    lines: dict[str, int] = {}
    doubled: list[str] = []
    _walk(node, "", lines, doubled)
    return Document(Path(path), data, lines, tuple(doubled))


def nearest_file(kind: str, name: str, folders: list[Path]) -> str:
    """Returns the message for a name that has no YAML file in ``folders``."""
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    return f"{unknown_name(kind, name, known)} (looked in {looked})"


def _walk(node: yaml.Node, place: str, lines: dict[str, int], doubled: list[str]) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            below = f"{place}.{name}".strip(".")
            if name in seen:
                doubled.append(
                    f"{below} (line {line})  key given twice, first in line {seen[name]}; keep one"
                )
            seen[name] = line
            lines[below] = line
            _walk(value, below, lines, doubled)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _walk(value, f"{place}.{number}".strip("."), lines, doubled)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{getattr(error, 'problem', None) or error}{place}"
