"""YAML that people write, as plain values with their lines: every other text is a YamlError.

Dates, objects and numbers that programs read as different ones are none, and neither are a few
lines that mean gigabytes (aliases of aliases).
"""

import re
from typing import Any

import yaml

MAX_VALUES = 1_000_000  # shared parts count wherever they appear
MAX_DEPTH = 50
_TAG = "tag:yaml.org,2002:"
MERGE = f"{_TAG}merge"  # the tag of the key "<<"
_PLAIN = {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{,399})")  # no float has more digits
_REAL = re.compile(
    r"[-+]?((0|[1-9][0-9]{,399})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
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


class YamlError(ValueError):
    """A text that is no YAML, or none of plain values; the message is one line."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader without dates, and with decimal numbers, of which ``1e-3`` is one."""


# of this class alone: what is changed in place would be changed for everybody
_OURS = {f"{_TAG}{kind}" for kind in ("int", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    letter: [entry for entry in entries if entry[0] not in _OURS]
    for letter, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind, _form in (("int", _WHOLE), ("float", _REAL), ("float", _ODD)):
    _whole_text = re.compile(f"(?:{_form.pattern})\\Z")
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", _whole_text, list("-+.0123456789"))


def parse_yaml(text: str) -> tuple[Any, yaml.Node | None]:
    """Return the value of a document, and its nodes, which have the lines; (None, None) when empty.

    The nodes are as they are written: a merged mapping is the value of its key ``<<``.
    Raise YamlError for everything that is not one document of plain values.
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
        if node is None:
            return None, None
        found: dict[yaml.Node, int] = {}
        _check(node, [], found)
        # constructing puts the pairs of merged mappings among those of the mapping itself
        written = {each: list(each.value) for each in found if isinstance(each, yaml.MappingNode)}
        value = loader.construct_document(node)
        for each, pairs in written.items():
            each.value = pairs
        return value, node
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise YamlError(f"{problem}{where}") from error


def _check(node: yaml.Node, above: list[yaml.Node], found: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node, and note it; raise YamlError unless all are plain."""
    line = f" in line {node.start_mark.line + 1}"
    if any(node is other for other in above):
        raise YamlError(f"a value that contains itself{line}")
    if node in found:
        return found[node]
    if node.tag not in _PLAIN and node.tag != MERGE:
        raise YamlError(
            f"a value with the tag {node.tag.replace(_TAG, '!!')}{line}; remove the tag"
        )
    if node.tag in (f"{_TAG}int", f"{_TAG}float"):
        form = _WHOLE if node.tag == f"{_TAG}int" else _REAL
        if not form.fullmatch(str(node.value)):
            shown = f"{node.value!s:.60}"
            raise YamlError(
                f"{shown}{line} is no plain decimal number; write digits alone, as in 10 or "
                "0.5, without leading zeros, '_', ':' or a base; as a text, put it into quotes: "
                f"'{shown}'"
            )
    found[node] = 1 + sum(_check(part, [*above, node], found) for part in _parts(node))
    if found[node] > MAX_VALUES:
        raise YamlError(f"more than {MAX_VALUES:,} values, by aliases{line}")
    return found[node]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.tag not in (f"{_TAG}str", MERGE):
                shown = key.value if isinstance(key.value, str) else f"a {key.id}"
                line = key.start_mark.line + 1
                raise YamlError(f"the key {shown} in line {line} is no text; put it into quotes")
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
