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
# slow, and asked for by each block of a study
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
    """Return a schema of pydantic's whose numbers stay as they are: 0 is not 0.0 in a digest."""

    def checked_alone(value: Any, check: Callable[[Any], Any]) -> Any:
        check(value)
        return value

    if isinstance(schema, list):
        return [_as_written(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "float":
        return no_info_wrap_validator_function(checked_alone, typing.cast(Any, schema))
    return {key: _as_written(part) for key, part in schema.items()}


def schema_of(config: type) -> dict[str, Any]:
    """Return the JSON Schema of a Config: closed, with types, limits, defaults and help."""
    return _adapter(config).json_schema()


def problems(config: type, values: Any, where: str = "") -> list[Problem]:
    """Return all ways in which ``values`` is no ``config``, with keys below ``where``."""
    try:
        build(config, values, where)
    except ConfigError as error:
        return [each.below(where) for each in error.problems]
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
    """Return what pydantic says, one problem a value, with the nearest name and the help."""
    words: dict[tuple[int | str, ...], list[str]] = {}
    codes: dict[tuple[int | str, ...], str] = {}
    for each in error.errors():
        code = each["type"]
        key: tuple[int | str, ...] = ()
        value = values
        message = f"{each['msg']}, not {each['input']!r:.200}"
        for part in each["loc"]:  # the names of alternatives are there as well
            if isinstance(value, Mapping) and (part in value or each["type"] == "missing"):
                key = (*key, part)
                value = value.get(part)
            elif isinstance(value, (list, tuple)) and isinstance(part, int):
                key = (*key, part)
                value = value[part]
        if each["type"] == "missing":
            message = each["msg"]
        elif each["type"] == "unexpected_keyword_argument":
            known = [name for one in _at(kind, key[:-1])[0] for name in options_of(one)]
            message = unknown_name("key", key[-1], known)
            code = "unknown_name"
        elif each["type"] == "literal_error":
            known = re.findall("'([^']+)'", each["ctx"]["expected"])
            message = unknown_name(str(key[-1]), each["input"], known)
            code = "unknown_name"
        elif each["type"] == "value_error":
            message = f"{each['ctx']['error']}: {each['input']!r:.200}"
        words.setdefault(key, []).append(message)
        codes.setdefault(key, code)
    found = []
    for key, messages in words.items():
        if not any(other != key and other[: len(key)] == key for other in words):
            help_text = _at(kind, key)[1]
            message = " or ".join(messages) + (f" ({help_text})" if help_text else "")
            found.append(Problem(message, ".".join(map(str, key)), code=codes[key]))
    return found


def _at(kind: Any, key: Iterable[int | str]) -> tuple[list[type], str]:
    """Return the dataclasses that the value at ``key`` may be of, and its help."""
    kinds = list(_dataclasses(kind))
    help_text = ""
    for part in key:
        for kind in kinds:
            if item := options_of(kind).get(part):
                help_text = item.metadata.get("description", "")
                kinds = list(_dataclasses(hints_of(kind)[item.name]))
    return kinds, help_text


def _dataclasses(hint: Any) -> Iterator[type]:
    """Yield the dataclasses in a type: of its alternatives, items and values."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _dataclasses(part)


def distinct(values: Sequence[Any]) -> Sequence[Any]:
    """Return values that differ; raise ValueError where one comes twice."""
    if len({json.dumps(value) for value in values}) < len(values):
        raise ValueError("non-unique elements; give each once")
    return values


def stated(config: Any) -> dict[str, Any]:
    """Return the values of a Config, nested ones as well, for a specification and its digest.

    Options that were ``added`` are left out at their defaults, so that a specification from before
    them and its digest stay as they are.
    """
    values: dict[str, Any] = {}
    for item in fields(config):
        value = getattr(config, item.name)
        if item.metadata.get("added") and value == item.default:
            continue
        values[item.name] = stated(value) if dataclasses.is_dataclass(value) else value
    return values


def without_added(config: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name in YAML, without options that were ``added``, at their defaults."""
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
    return {
        name: item.default if item.default_factory is MISSING else item.default_factory()
        for name, item in options_of(config).items()
        if item.default is not MISSING or item.default_factory is not MISSING
    }
