"""Typed options: a frozen dataclass beside its component is the schema of its YAML.

``option(...)`` attaches bounds and help to a field; ``schema_of`` turns the dataclass into JSON Schema,
which validates both a live call (``build``) and a study file (without importing the component).
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, TypeChecker
from jsonschema.validators import extend

from benchmark.core.errors import ConfigError, unknown_name

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_BOUNDS = {
    "above": "exclusiveMinimum",
    "at_least": "minimum",
    "below": "exclusiveMaximum",
    "at_most": "maximum",
}


def _is_integer(_: TypeChecker, value: Any) -> bool:
    """JSON Schema takes 32.0 for an integer; what is then built with it does not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: TypeChecker, value: Any) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


_STRICT = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {"integer": _is_integer, "number": _is_number}
)
_Validator = extend(Draft202012Validator, type_checker=_STRICT)


def option(default: Any = dataclasses.MISSING, *, help: str, **bounds: float) -> Any:
    """Returns a dataclass field with help and bounds: above, at_least, below, at_most."""
    unknown = set(bounds) - set(_BOUNDS)
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; allowed: {sorted(_BOUNDS)}")
    metadata = {"help": help, "bounds": bounds}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def schema_of(config: type) -> dict[str, Any]:
    """Returns the JSON Schema of a Config dataclass: closed, typed, with bounds, defaults and help."""
    hints = typing.get_type_hints(config)
    properties, required = {}, []
    for item in dataclasses.fields(config):
        schema = _type_schema(hints[item.name])
        for bound, value in item.metadata.get("bounds", {}).items():
            schema[_BOUNDS[bound]] = value
        if item.metadata.get("help"):
            schema["description"] = item.metadata["help"]
        if item.default is not dataclasses.MISSING:
            schema["default"] = item.default
        elif item.default_factory is not dataclasses.MISSING:
            if not dataclasses.is_dataclass(default := item.default_factory()):
                schema["default"] = default
        else:
            required.append(item.name)
        properties[item.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def problems(schema: Mapping[str, Any], values: Mapping[str, Any], where: str = "") -> list[str]:
    """Returns one line for each way in which ``values`` breaks ``schema``; empty when all is right.

    Stricter than JSON Schema: whole numbers are written as such, and numbers are finite.
    """
    found = []
    validator = _Validator(schema)
    for error in sorted(
        validator.iter_errors(values), key=lambda error: list(map(str, error.absolute_path))
    ):
        place = ".".join([where, *map(str, error.absolute_path)]).strip(".") or "value"
        if error.validator == "additionalProperties":
            known = list(error.schema.get("properties", {}))
            extra = [key for key in error.instance if key not in known]
            found += [f"{place}  {unknown_name('key', key, known)}" for key in extra]
        else:
            found.append(f"{place}  {error.message}{_allowed(error)}")
    return found


def build(config: type, values: Mapping[str, Any], where: str) -> Any:
    """Returns ``config(**values)`` after validation; raises ConfigError with all problems at once."""
    found = problems(schema_of(config), values)
    if found:
        raise ConfigError(where, found)
    return make(config, values)


def make(config: type, values: Mapping[str, Any]) -> Any:
    """Returns ``config(**values)`` without validation; a mapping for a field that is a Config becomes that Config."""
    hints = typing.get_type_hints(config)
    nested = {
        name: make(part, values[name])
        for name in values
        if isinstance(values[name], Mapping) and (part := _config_in(hints.get(name))) is not None
    }
    return config(**{**values, **nested})


def defaults_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the default of every property of a schema that has one."""
    return {
        name: entry["default"]
        for name, entry in schema.get("properties", {}).items()
        if "default" in entry
    }


def _config_in(hint: Any) -> type | None:
    """Returns the Config dataclass that a hint allows, alone or beside None."""
    return next(
        (part for part in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(part)), None
    )


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return schema_of(hint)
    if origin in (types.UnionType, typing.Union):
        parts = [_type_schema(argument) for argument in arguments]
        if _config_in(hint) is not None:
            # one schema instead of alternatives, so that a message names the key inside that is wrong
            return {**schema_of(_config_in(hint)), "type": ["object", "null"]}
        if all(set(part) == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        return (
            {"type": "array", "items": _type_schema(arguments[0])}
            if arguments
            else {"type": "array"}
        )
    if origin is dict or hint is dict:
        return {"type": "object"}
    if hint is Any:
        return {}
    return {"type": _TYPES[hint]}


def _allowed(error: Any) -> str:
    """Returns the bounds and help of the field, so that the message says what is allowed."""
    schema = error.schema
    words = {value: key.replace("_", " ") for key, value in _BOUNDS.items()}
    bounds = [f"{words[key]} {schema[key]}" for key in words if key in schema]
    help_text = schema.get("description", "")
    parts = [part for part in (", ".join(bounds), help_text) if part]
    return f" (allowed: {'; '.join(parts)})" if parts else ""
