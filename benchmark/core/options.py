"""Typed options: a frozen dataclass beside its component is the schema of its YAML.

``option(...)`` attaches bounds and help to a field; ``schema_of`` turns the dataclass into JSON
Schema, which validates both a live call (``build``) and a study file (without importing the
component).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.core.errors import ConfigError, Problem, unknown_name

if TYPE_CHECKING:
    from jsonschema import TypeChecker, ValidationError

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_BOUNDS = {
    "above": "exclusiveMinimum",
    "at_least": "minimum",
    "below": "exclusiveMaximum",
    "at_most": "maximum",
}
_EMPTY: dict[str, Any] = {"string": "", "array": [], "object": {}}


def _is_integer(_: TypeChecker, value: Any) -> bool:
    """Say whether a value is a whole number; JSON Schema alone takes 32.0 for one."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_number(_: TypeChecker, value: Any) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check a pattern, whose ``$`` does not match before a newline at the end."""
    from jsonschema import ValidationError

    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match '{pattern}'")


def _distinct(_: Any, wanted: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check that items differ; jsonschema compares each pair of items of mixed types."""
    from jsonschema import ValidationError

    items = value if wanted and isinstance(value, list) else []
    if len({json.dumps(item, sort_keys=True, default=str) for item in items}) < len(items):
        yield ValidationError(f"{value!r} has non-unique elements")


@functools.cache
def _validator() -> Any:
    """Return the class that checks a schema; what is made without a check needs no jsonschema."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    strict = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    )
    checks = {"pattern": _pattern, "uniqueItems": _distinct}
    return extend(Draft202012Validator, checks, type_checker=strict)


_hints = functools.cache(typing.get_type_hints)  # slow, and asked for by each block of a study


def option(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    schema: Mapping[str, Any] | None = None,
    search: Mapping[str, Sequence[float]] | None = None,
    added: bool = False,
    **bounds: float,
) -> Any:
    """Return a dataclass field with help and bounds: above, at_least, below, at_most.

    ``search`` is the range that trials draw the value from (``benchmark.core.search``).

    ``schema`` holds further keywords of JSON Schema. ``added``: the option is younger than results
    that are to remain valid, and its default is what was done before it; ``stated`` leaves it out
    at its default.
    """
    extra = {**{_BOUNDS[name]: value for name, value in bounds.items()}, **(schema or {})}
    if search:
        extra["search"] = dict(search)
    metadata = {"help": help, "schema": extra, "added": added}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def schema_of(config: type) -> dict[str, Any]:
    """Return the JSON Schema of a Config dataclass: closed, with types, bounds, defaults, help."""
    if hasattr(config, "json_schema"):  # it knows more than its fields say
        return dict(config.json_schema())
    hints = _hints(config)
    properties, required = {}, []
    for item in dataclasses.fields(config):
        schema = _type_schema(hints[item.name]) | dict(item.metadata.get("schema", {}))
        if item.metadata.get("help"):
            schema["description"] = item.metadata["help"]
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        if default is dataclasses.MISSING:
            required.append(item.name)
        elif not dataclasses.is_dataclass(default):
            schema["default"] = default
        properties[item.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def problems(schema: Mapping[str, Any], values: Any, where: str = "") -> list[Problem]:
    """Return all ways in which ``values`` breaks ``schema``, with keys below ``where``.

    Stricter than JSON Schema: whole numbers are written as such, and numbers are finite.
    """
    found = []
    errors = _validator()(schema).iter_errors(values)
    for error in sorted(errors, key=lambda error: list(map(str, error.absolute_path))):
        key = ".".join([where, *map(str, error.absolute_path)]).strip(".")
        if error.validator == "additionalProperties":
            known = list(error.schema.get("properties", {}))
            found += [
                Problem(unknown_name("key", name, known), f"{key}.{name}".strip("."))
                for name in error.instance
                if name not in known
            ]
        else:
            message = typing.cast(dict[str, Any], error.schema).get("message")
            found.append(Problem(message or f"{_words(error)}{_allowed(error)}", key))
    return found


def sound_part(schema: Mapping[str, Any], value: Any) -> Any:
    """Return ``value`` as a dataclass of this schema can hold it, so that further checks can go on.

    A value of a wrong type, or one that is missing, becomes its default, an empty one or None; an
    unknown key goes. What ``problems`` has said is not said again.
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_type = _validator().TYPE_CHECKER.is_type
    if value is ... or (kinds and not any(is_type(value, kind) for kind in kinds)):
        return schema.get("default", _empty(schema, kinds))
    if isinstance(value, Mapping) and "properties" in schema:
        parts = schema["properties"]
        is_open = schema.get("additionalProperties") is not False
        given = {
            name: sound_part(parts.get(name, {}), item)
            for name, item in value.items()
            if name in parts or is_open
        }
        missing = [name for name in schema.get("required", []) if name not in given]
        return given | {name: sound_part(parts[name], ...) for name in missing}
    if isinstance(value, Mapping) and isinstance(schema.get("additionalProperties"), Mapping):
        part = schema["additionalProperties"]
        return {str(name): sound_part(part, item) for name, item in value.items()}
    if isinstance(value, list) and "items" in schema:
        return [sound_part(schema["items"], item) for item in value]
    return value


def build(config: type, values: Mapping[str, Any], where: str) -> Any:
    """Return ``config(**values)`` after validation; raise ConfigError with all problems at once."""
    found = problems(schema_of(config), values)
    if found:
        raise ConfigError(where, found)
    return make(config, values)


def make(config: type, values: Mapping[str, Any]) -> Any:
    """Return ``config(**values)`` without validation; mappings inside become Configs as well."""
    if hasattr(config, "from_options"):  # its fields have other names
        return config.from_options(values)
    hints = _hints(config)
    return config(**{name: _made(hints.get(name), value) for name, value in values.items()})


def stated(config: Any) -> dict[str, Any]:
    """Return the values of a Config, nested ones as well, for a specification and its digest.

    Options that were ``added`` are left out at their defaults, so that a specification from before
    them and its digest stay as they are.
    """
    values: dict[str, Any] = {}
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if item.metadata.get("added") and value == item.default:
            continue
        values[item.name] = stated(value) if dataclasses.is_dataclass(value) else value
    return values


def defaults_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default of every property of a schema that has one."""
    return {
        name: entry["default"]
        for name, entry in schema.get("properties", {}).items()
        if "default" in entry
    }


def _made(hint: Any, value: Any) -> Any:
    hints = (hint, *typing.get_args(hint))
    if isinstance(value, Mapping):
        config = next((each for each in hints if dataclasses.is_dataclass(each)), None)
        return value if config is None else make(typing.cast(type, config), value)
    if isinstance(value, list):
        kind = next((each for each in hints if typing.get_origin(each) in (list, tuple)), None)
        items = [_made(typing.get_args(kind)[0], item) for item in value] if kind else value
        return tuple(items) if typing.get_origin(kind) is tuple else items
    return value


def _empty(schema: Mapping[str, Any], kinds: list[str]) -> Any:
    """Return an empty value of the first kind: a complete mapping, "", [] or None."""
    if "object" in kinds[:1] and "properties" in schema:
        return sound_part(schema, {})
    return _EMPTY.get(kinds[0]) if kinds else None


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return schema_of(typing.cast(type, hint))
    if origin in (types.UnionType, typing.Union):
        # one schema instead of alternatives, so that a message names the key inside that is wrong
        parts = [_type_schema(argument) for argument in arguments]
        merged = {key: value for part in parts for key, value in part.items()}
        return {**merged, "type": [part["type"] for part in parts]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        items = _type_schema(arguments[0]) if arguments else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if origin is dict:
        values = _type_schema(arguments[1])
        return {"type": "object"} | ({"additionalProperties": values} if values else {})
    if hint in (dict, list):
        return {"type": {dict: "object", list: "array"}[hint]}
    return {} if hint is Any else {"type": _TYPES[hint]}


def _words(error: ValidationError) -> str:
    """Return what is wrong; a value of many letters or digits is cut."""
    value = error.instance
    if error.validator == "type" and isinstance(value, int) and abs(value) >= 2**63:
        return "a whole number of 64 bits or more"
    whole, shown = repr(value), f"{value!r:.200}"
    return error.message.replace(whole, f"{shown}...") if len(whole) > 200 else error.message


def _allowed(error: ValidationError) -> str:
    """Return the bounds and help of the field, so that the message says what is allowed."""
    schema = typing.cast(dict[str, Any], error.schema)
    words = {value: key.replace("_", " ") for key, value in _BOUNDS.items()}
    bounds = [f"{words[key]} {schema[key]}" for key in words if key in schema]
    help_text = schema.get("description", "")
    parts = [part for part in (", ".join(bounds), help_text) if part]
    return f" (allowed: {'; '.join(parts)})" if parts else ""
