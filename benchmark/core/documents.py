"""Read YAML that people write, as plain values with their lines.

Dates, objects, numbers that programs read differently, and aliases of aliases that expand to
gigabytes raise YamlError.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.files import check_regular

MAX_BYTES = 10_000_000
MAX_VALUES = 200_000  # shared parts count wherever they appear
MAX_DEPTH = 50
KEY_LETTERS = 100  # letters of a value's key that count as one more value
_TAG = "tag:yaml.org,2002:"
_PLAIN = {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{,399})")  # no float has more digits
_REAL = re.compile(
    r"[-+]?((0|[1-9][0-9]{,399})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
# Texts that YAML 1.1, YAML 1.2, Python or a person take for different numbers.
_ODD = re.compile(
    r"[-+]?("
    r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
    r"|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9][0-9_]*)?"
    r")"
)


def whole_number(text: str) -> int | None:
    """Return a text of at most 18 digits as a number, None for any other text."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


class YamlError(ValueError):
    """The text is not valid YAML, or has values other than text, numbers, lists and mappings.

    The message is one line.
    """


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader without dates, and with decimal numbers, of which ``1e-3`` is one.

    It records the line of each key, and the keys that are given twice.
    """

    def __init__(self, text: str):
        super().__init__(text)
        self.lines: dict[str, int] = {}
        self.twice: list[Problem] = []
        self.count = 0

    def value(self, node: yaml.Node, key: str = "", depth: int = 0) -> Any:
        """Return the value of a node; raise YamlError unless it is plain."""
        line = f" in line {node.start_mark.line + 1}"
        self.count += 1 + len(key) // KEY_LETTERS  # the key of each value is kept
        if self.count > MAX_VALUES:
            shared = "an alias counts as all that it stands for"
            raise YamlError(f"more than {MAX_VALUES:,} values{line}; {shared}")
        if depth > MAX_DEPTH:
            raise YamlError(f"a value that contains itself{line}")
        if node.tag not in _PLAIN:
            tag = node.tag.replace(_TAG, "!!")
            raise YamlError(f"a value with the tag {tag}{line}; remove the tag")
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, key, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, f"{key}.{number}".strip("."), depth + 1)
                for number, item in enumerate(node.value)
            ]
        if node.tag in (f"{_TAG}int", f"{_TAG}float"):
            form = _WHOLE if node.tag == f"{_TAG}int" else _REAL
            if not form.fullmatch(node.value):
                shown = f"{node.value:.60}"
                raise YamlError(
                    f"{shown}{line} is not a plain decimal number; write digits alone, as in 10 or "
                    "0.5, without leading zeros, '_', ':' or a base; as a text, put it into "
                    f"quotes: '{shown}'"
                )
        return self.construct_object(node)

    def mapping(self, node: yaml.MappingNode, key: str, depth: int) -> dict[str, Any]:
        """Return a mapping.

        Its own keys replace the keys that ``<<`` merges. The first of several merges counts.
        """
        merged: dict[str, Any] = {}
        for name, value in node.value:
            if name.tag == f"{_TAG}merge":
                nodes = value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value]
                for merge in nodes:
                    if not isinstance(merge, yaml.MappingNode):
                        line = value.start_mark.line + 1
                        raise YamlError(f"expected a mapping or list of mappings in line {line}")
                    merged |= self.value(merge, key, depth + 1)
        values: dict[str, Any] = {}
        first: dict[str, int] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            if name.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                shown = name.value if isinstance(name.value, str) else f"a {name.id}"
                raise YamlError(f"the key {shown} in line {line} is not text; put it into quotes")
            below = f"{key}.{name.value}".strip(".")
            if name.value in first:
                message = f"key given twice, first in line {first[name.value]}; keep one"
                self.twice.append(Problem(message, below, line, "given_twice"))
            first[name.value] = line
            if name.tag != f"{_TAG}merge":
                self.lines[below] = line
                values[name.value] = self.value(value, below, depth + 1)
        return merged | values


# a new dictionary: changing the old one would change every loader of PyYAML
_OURS = {f"{_TAG}{kind}" for kind in ("int", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {}
for _letter, _resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items():
    _kept = [resolver for resolver in _resolvers if resolver[0] not in _OURS]
    _Loader.yaml_implicit_resolvers[_letter] = _kept
for _kind, _form in (("int", _WHOLE), ("float", _REAL), ("float", _ODD)):
    _whole_text = re.compile(f"(?:{_form.pattern})\\Z")
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", _whole_text, list("-+.0123456789"))


class Yaml(NamedTuple):
    """A document: its value, the line (from 1) of each key, and the keys that are given twice."""

    value: Any
    lines: dict[str, int]
    twice: list[Problem]


def parse_yaml(text: str) -> Yaml:
    """Return the document in a text; None as the value of an empty text.

    Raise YamlError if the text is not one document of plain values.
    """
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # libyaml's nodes would overflow the stack of the process
                raise YamlError(f"more than {MAX_DEPTH} levels of nesting")
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.value(node)
        return Yaml(value, loader.lines, loader.twice)
    except yaml.YAMLError as error:
        position = getattr(error, "problem_mark", None)
        where = f" in line {position.line + 1}, column {position.column + 1}" if position else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise YamlError(f"{problem}{where}") from error


@dataclass
class Document:
    """A parsed file: its content, and the line (from 1) of each key."""

    path: Path
    data: dict[str, Any]
    lines: dict[str, int]

    def locate(self, problem: Problem, above: str = "") -> Problem:
        """Return ``problem``, whose key stands below ``above``, with its line.

        A key without a line gets the line of the nearest value around it.
        """
        located = problem.below(above)
        around = located.key
        while around and around not in self.lines:
            around = around.rpartition(".")[0]
        return replace(located, line=self.lines.get(around))


def read_document(path: Path) -> Document:
    """Return the document at ``path``.

    Raise ConfigError if the file is absent, is not a mapping, or gives a key twice; DataError for
    what is no regular file, or is too large.
    """
    check_regular(path, MAX_BYTES)
    try:
        text = Path(path).read_text(encoding="utf-8")
        data, lines, twice = parse_yaml(text)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [f"is not UTF-8 text: {error}"]) from error
    except YamlError as error:
        problem = Problem(f"is not valid YAML: {error}", code="invalid_yaml")
        raise ConfigError(str(path), [problem]) from error
    if not isinstance(data, dict):
        message = "must be a mapping of keys to values, see docs/studies.md"
        raise ConfigError(str(path), [Problem(message, code="dict_type")])
    if twice:
        raise ConfigError(str(path), twice)
    return Document(Path(path), data, lines)


def nearest_file(kind: str, name: str, folders: Sequence[Path]) -> str:
    """Return the message for a name that has no YAML file in ``folders``."""
    names = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    searched = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    return f"{unknown_name(kind, name, names)} (looked in {searched})"
