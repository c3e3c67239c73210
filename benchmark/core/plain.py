"""YAML that people write, as plain values: every text that is none is a ValueError.

A few lines of it can mean a value of gigabytes (aliases of aliases), a value that contains itself,
a date or an object: all of them are refused.
"""

import re
from typing import Any

import yaml

MAX_LETTERS = 1_000_000  # a minute of reading for many short values
MAX_VALUES = 1_000_000  # shared parts count wherever they appear
MAX_DEPTH = 50
MAX_DIGITS = 400  # no float has more
SHOWN_LETTERS = 60  # of a wrong number, in the message
_TAG = "tag:yaml.org,2002:"
MERGE = f"{_TAG}merge"  # the tag of the key "<<"
_LENIENT = set("\t?\ufeff")  # libyaml allows these where PyYAML refuses them
_PLAIN = {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL = re.compile(
    r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
# What YAML 1.1, YAML 1.2, Python or a reader takes for a number, each for another one.
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


def _refuse_halves(text: str) -> None:
    """Raise ValueError for half a surrogate pair, which no file, name or page can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"\\u{ord(text[error.start]):04x} is no letter") from error


class YamlError(ValueError):
    """A text that is no YAML, or none of plain values; the message is one line."""


class _Loader(yaml.SafeLoader):
    """The safe loader without dates, and with decimal numbers, of which ``1e-3`` is one."""


class _FastLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same on libyaml, where PyYAML was built with it: three times as fast."""


# of these classes alone: what is changed in place would be changed for everybody
_OURS = {f"{_TAG}{kind}" for kind in ("int", "float", "timestamp")}
for _each in (_Loader, _FastLoader):
    _each.yaml_implicit_resolvers = {
        letter: [entry for entry in entries if entry[0] not in _OURS]
        for letter, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for _kind, _form in (("int", _WHOLE), ("float", _REAL), ("float", _ODD)):
        _whole_text = re.compile(f"(?:{_form.pattern})\\Z")
        _each.add_implicit_resolver(f"{_TAG}{_kind}", _whole_text, list("-+.0123456789"))


def parse_yaml(text: str) -> tuple[Any, yaml.Node | None]:
    """Return the value of a document, and its nodes, which have the lines; (None, None) when empty.

    The nodes are as they are written: a merged mapping is the value of its key ``<<``.
    Raise YamlError for everything that is not one document of plain values.
    """
    if len(text) > MAX_LETTERS:
        raise YamlError(f"more than {MAX_LETTERS:,} letters; divide the file")
    try:
        loader, node = _nodes(text)
        if node is None:
            return None, None
        sizes: dict[yaml.Node, int] = {}
        _check(node, [], sizes)
        # constructing puts the pairs of merged mappings among those of the mapping itself
        written = {each: list(each.value) for each in sizes if isinstance(each, yaml.MappingNode)}
        value = loader.construct_document(node)
        for each, pairs in written.items():
            each.value = pairs
        return value, node
    except YamlError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise YamlError(f"{problem}{where}") from error
    except RecursionError as error:
        raise YamlError(f"more than {MAX_DEPTH} levels of nesting") from error
    except ValueError as error:  # of a number that looks like one
        raise YamlError(str(error)) from error


def _nodes(text: str) -> tuple[Any, yaml.Node | None]:
    """Return a loader and the nodes of its document; what libyaml refuses, PyYAML words."""
    if set(text) & _LENIENT:
        slow = _Loader(text)
        return slow, slow.get_single_node()
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_FastLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # libyaml's nodes would overflow the stack of the process
                raise RecursionError
        loader = _FastLoader(text)
        return loader, loader.get_single_node()
    except (yaml.YAMLError, ValueError, RecursionError):
        slow = _Loader(text)
        return slow, slow.get_single_node()


def _check(node: yaml.Node, above: list[yaml.Node], sizes: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node; raise YamlError unless all are plain."""
    if node in sizes:
        return sizes[node]
    line = f" in line {node.start_mark.line + 1}"
    if any(node is other for other in above):
        raise YamlError(f"a value that contains itself{line}")
    if len(above) >= MAX_DEPTH:
        raise YamlError(f"more than {MAX_DEPTH} levels of nesting{line}")
    if node.tag not in _PLAIN and node.tag != MERGE:
        raise YamlError(
            f"a value with the tag {node.tag.replace(_TAG, '!!')}{line}; remove the tag"
        )
    if isinstance(node.value, str):
        _refuse_halves(node.value)
    if node.tag in (f"{_TAG}int", f"{_TAG}float"):
        _check_number(node, line)
    if node.tag == f"{_TAG}int" and len(node.value) > MAX_DIGITS:
        raise YamlError(f"a number of more than {MAX_DIGITS} digits{line}")
    size = 1
    for part in _parts(node):
        size += _check(part, [*above, node], sizes)
    if size > MAX_VALUES:
        raise YamlError(f"more than {MAX_VALUES:,} values, by aliases{line}")
    sizes[node] = size
    return size


def _check_number(node: yaml.Node, line: str) -> None:
    """Raise YamlError for a number that is none, or not the same one to every reader."""
    form = _WHOLE if node.tag == f"{_TAG}int" else _REAL
    text = node.value if isinstance(node.value, str) else "a list or mapping"
    if not form.fullmatch(text):
        shown = text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."
        raise YamlError(
            f"{shown}{line} is no plain decimal number; write digits alone, as in 10 or 0.5, "
            f"without leading zeros, '_', ':' or a base; as a text, put it into quotes: '{shown}'"
        )


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.tag not in (f"{_TAG}str", MERGE):
                shown = key.value if isinstance(key.value, str) else f"a {key.id}"
                line = key.start_mark.line + 1
                raise YamlError(f"the key {shown} in line {line} is no text; put it into quotes")
            _refuse_halves(key.value)
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
