"""Typed options: a frozen dataclass beside its component is the schema of its YAML.

``option(...)`` attaches limits and help to a field. pydantic checks values against the dataclass
(``problems``, ``build``) and writes its JSON Schema for editors (``schema_of``).
"""

import dataclasses
import functools
import json
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import no_info_wrap_validator_function

from benchmark.core.errors import ConfigError, Problem, unknown_name

Made = TypeVar("Made")

_LIMITS = {"above": "gt", "at_least": "ge", "below": "lt", "at_most": "le"}
# Numbers are finite and of the type that is written: no 32.0 for 32, no "yes" for true.
_STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
# cached, because it is slow and each block of a study needs it
hints_of = functools.cache(functools.partial(typing.get_type_hints, include_extras=True))


def option(
    default: Any = MISSING,
    *,
    help: str = "",
    search: Mapping[str, Sequence[float]] | None = None,
    added: bool = False,
    **limits: Any,
) -> Any:
    """Return a dataclass field with help and limits: above, at_least, below, at_most.

    Further limits are those of pydantic's ``Field``: pattern, min_length, max_length, and alias,
    the name in YAML.

    ``search`` is the range that trials draw the value from (``benchmark.study.trials``).
    ``added=True`` means that the option was introduced after results had been published. Its
    default is then the old behaviour. ``stated`` omits the option at its default, so that old
    specifications keep their digest.
    """
    limits = {_LIMITS.get(name, name): value for name, value in limits.items()}
    extra: dict[str, Any] = {"search": dict(search)} if search else {}
    # pydantic reads limits, description and schema from the metadata
    metadata = {**limits, "description": help, "added": added, **extra, "json_schema_extra": extra}
    if not isinstance(default, (list, dict)):
        return dataclasses.field(default=default, metadata=metadata)
    extra["default"] = default
    return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
def options(config: type[Made]) -> type[Made]:
    """Make a frozen dataclass whose fields are given by name."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(config)


@functools.cache
def _adapter(config: Any) -> TypeAdapter[Any]:
    config.__pydantic_config__ = _STRICT
    return TypeAdapter(config)


@functools.cache
def _validator(config: Any) -> SchemaValidator:
    return SchemaValidator(_as_written(_adapter(config).core_schema))


def _as_written(schema: Any) -> Any:
    """Return a schema of pydantic that checks numbers without converting them.

    The digest of a specification depends on whether a number is written 0 or 0.0.
    """

    def checked_alone(value: Any, check: Callable[[Any], Any]) -> Any:
        check(value)
        return value

    if isinstance(schema, list):
        return [_as_written(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "float":
        return no_info_wrap_validator_function(checked_alone, typing.cast(Any, schema))
    return {key: _as_written(inner) for key, inner in schema.items()}


def schema_of(config: type) -> dict[str, Any]:
    """Return the JSON Schema of a Config: closed, with types, limits, defaults and help."""
    return _adapter(config).json_schema()


def problems(config: type, values: Any, where: str = "") -> list[Problem]:
    """Return the problems of ``values`` as a ``config``, with keys below ``where``."""
    try:
        build(config, values, where)
    except ConfigError as error:
        return [problem.below(where) for problem in error.problems]
    return []


def build(config: type[Made], values: Any, where: str) -> Made:
    """Return ``values`` as a ``config``; raise ConfigError with all problems at once."""
    text = json.dumps(values, default=str)  # where a mapping may become a dataclass, a list a tuple
    try:
        made: Made = _validator(typing.cast(Any, config)).validate_json(text)
    except ValidationError as error:
        raise ConfigError(where, worded(config, values, error)) from error
    return made


def worded(kind: Any, values: Any, error: ValidationError) -> list[Problem]:
    """Return the errors of pydantic as problems: one for each value, with its help.

    Messages of several alternatives for one value are joined. A value has no problem of its own if
    a value inside of it has one.
    """
    told: dict[tuple[int | str, ...], tuple[str, list[str]]] = {}
    for detail in error.errors():
        code = detail["type"]
        key: tuple[int | str, ...] = ()
        value = values
        for name in detail["loc"]:  # which also has the names of alternatives
            if isinstance(value, Mapping) and (name in value or code == "missing"):
                key = (*key, name)
                value = value.get(name)
            elif isinstance(value, (list, tuple)) and isinstance(name, int):
                key = (*key, name)
                value = value[name]
        message = f"{detail['msg']}, not {detail['input']!r:.200}"
        if code == "missing":
            message = detail["msg"]
        elif code == "unexpected_keyword_argument":
            known = [name for owner in _at(kind, key[:-1])[0] for name in options_of(owner)]
            message = unknown_name("key", key[-1], known)
            code = "unknown_name"
        elif code == "literal_error":
            known = re.findall("'([^']+)'", detail["ctx"]["expected"])
            message = unknown_name(str(key[-1]), detail["input"], known)
            code = "unknown_name"
        elif code == "value_error":
            message = f"{detail['ctx']['error']}: {detail['input']!r:.200}"
        told.setdefault(key, (code, []))[1].append(message)
    problems = []
    for key, (code, messages) in told.items():
        if any(other != key and other[: len(key)] == key for other in told):
            continue
        message = " or ".join(messages)
        if help_text := _at(kind, key)[1]:
            message += f" ({help_text})"
        problems.append(Problem(message, ".".join(map(str, key)), code=code))
    return problems


def _at(kind: Any, key: Iterable[int | str]) -> tuple[list[type], str]:
    """Return the dataclasses that the value at ``key`` may have, and its help."""
    kinds = list(_dataclasses(kind))
    help_text = ""
    for name in key:
        for kind in kinds:
            if item := options_of(kind).get(name):
                help_text = item.metadata.get("description", "")
                kinds = list(_dataclasses(hints_of(kind)[item.name]))
    return kinds, help_text


def _dataclasses(hint: Any) -> Iterator[type]:
    """Yield the dataclasses in a type: of its alternatives, items and values."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for inner in typing.get_args(hint):
        yield from _dataclasses(inner)


def distinct(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values; raise ValueError if a value comes twice."""
    if len({json.dumps(value) for value in values}) < len(values):
        raise ValueError("non-unique elements; give each once")
    return values


def stated(config: Any) -> dict[str, Any]:
    """Return the values of a Config and of the Configs in it, for a specification and its digest.

    Options that were ``added`` are left out at their defaults, so that old specifications keep
    their digest.
    """
    values: dict[str, Any] = {}
    for item in fields(config):
        value = getattr(config, item.name)
        if item.metadata.get("added") and value == item.default:
            continue
        values[item.name] = stated(value) if dataclasses.is_dataclass(value) else value
    return values


def without_added(config: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name in YAML, without ``added`` options that have their defaults."""
    known = options_of(config)
    kept = {}
    for name, value in values.items():
        item = known.get(name)
        if item is None or not item.metadata.get("added") or value != item.default:
            kept[name] = value
    return kept


def options_of(config: type) -> dict[Any, dataclasses.Field[Any]]:
    """Return the options of a Config by their names in YAML."""
    return {item.metadata.get("alias", item.name): item for item in fields(config)}


def defaults_of(config: type) -> dict[str, Any]:
    """Return the default of every option of a Config that has one."""
    defaults = {}
    for name, item in options_of(config).items():
        if item.default_factory is not MISSING:
            defaults[name] = item.default_factory()
        elif item.default is not MISSING:
            defaults[name] = item.default
    return defaults
