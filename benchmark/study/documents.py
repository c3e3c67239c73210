"""YAML documents that remember the line of every value, so that problems can be found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.plain import MERGE, YamlError, parse_yaml


@dataclass
class Document:
    """A parsed file: its content, and the line (from 1) of each key."""

    path: Path
    data: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)

    def locate(self, problem: Problem, above: str = "") -> Problem:
        """Return ``problem``, whose key stands below ``above``, with its line.

        A key without a line gets that of the nearest value around it.
        """
        key = ".".join(filter(None, (above, problem.key)))
        around = key
        while around and around not in self.lines:
            around = around.rpartition(".")[0]
        return replace(problem, key=key, line=self.lines.get(around))


def read_document(path: Path) -> Document:
    """Return the document at ``path``; raise ConfigError when it is absent or no mapping.

    A key that is given twice is an error as well.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data, node = parse_yaml(text)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [f"is not UTF-8 text: {error}"]) from error
    except YamlError as error:
        raise ConfigError(str(path), [f"is not valid YAML: {error}"]) from error
    if not isinstance(data, dict):
        words = "must be a mapping of keys to values, see docs/architecture.md"
        raise ConfigError(str(path), [words])
    document = Document(Path(path), data)
    assert node is not None  # a mapping has one
    if twice := list(_note_lines(node, "", document.lines)):
        raise ConfigError(str(path), twice)
    return document


JOINT = "-on-"  # between the name of a study and the other dataset that it runs on


def name_on(study: str | Path, dataset: str) -> str:
    """Return the name or path under which ``study`` on another dataset is loaded."""
    stem, suffix = str(study), ""
    if stem.endswith((".yaml", ".yml")):
        stem, suffix = stem.rpartition(".")[0], ".yaml"
    return f"{stem}{JOINT}{dataset}{suffix}"


def base_of(name: str) -> str:
    """Return the study whose name or path on another dataset this is, "" for any other name."""
    stem, joint, dataset = name.rpartition(JOINT)
    if not joint or not stem or "/" in dataset:
        return ""
    suffix = ".yaml" if dataset.endswith((".yaml", ".yml")) else ""
    return f"{stem}{suffix}"


def nearest_file(kind: str, name: str, folders: Sequence[Path]) -> str:
    """Return the message for a name that has no YAML file in ``folders``."""
    names = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    searched = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    return f"{unknown_name(kind, name, names)} (looked in {searched})"


def _note_lines(node: yaml.Node, key: str, lines: dict[str, int]) -> Iterator[Problem]:
    """Note the line of each value in ``node``; yield the keys that are given twice."""
    lines.setdefault(key, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for merged in _merged(node):
            yield from _note_lines(merged, key, lines)
        first: dict[str, int] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            below = f"{key}.{name.value}".strip(".")
            if name.value in first:
                words = f"key given twice, first in line {first[name.value]}; keep one"
                yield Problem(words, below, line)
            first[name.value] = line
            if name.tag != MERGE:
                lines[below] = line
                yield from _note_lines(value, below, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _note_lines(value, f"{key}.{number}".strip("."), lines)


def _merged(node: yaml.MappingNode) -> list[yaml.Node]:
    """Return the mappings that ``<<`` puts below the keys of another, the strongest last."""
    values = [value for name, value in node.value if name.tag == MERGE]
    return [
        each
        for value in values
        for each in (value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value])
    ]
