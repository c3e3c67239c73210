"""Whether the Config of a component from elsewhere can be used: said before a run meets it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from benchmark.core.options import problems, schema_of, schema_problem


def config_problems(config: Any, reserved: Collection[str] = ()) -> list[str]:
    """Return what is wrong with a Config itself; ``reserved`` are names that no option may have."""
    if hasattr(config, "json_schema"):  # it knows more than its fields say
        return []
    decorator = "put @dataclass(frozen=True, kw_only=True) above it"
    if not isinstance(config, type) or not dataclasses.is_dataclass(config):
        return [f"Config is no dataclass; {decorator}"]
    own = inspect.get_annotations(config)
    if own and "__dataclass_fields__" not in vars(config):
        return [
            f"Config is no dataclass of its own, so {', '.join(own)} would be lost; {decorator}"
        ]
    try:
        schema = schema_of(config)
    except Exception as error:  # a default that cannot be made, a type that YAML does not know
        words = f"{type(error).__name__}: {error}"
        return [
            f"the options of Config cannot be described ({words}); allowed types: int, float, str, "
            "bool, None, Literal, lists, dicts and dataclasses of these"
        ]
    found = []
    for name, entry in schema["properties"].items():
        if name in reserved:
            names = ", ".join(sorted(reserved))
            found.append(f"option '{name}' has a name that is taken ({names}); give it another")
        else:
            found += [f"option '{name}': {words}" for words in _option_problems(entry)]
    return found


def _option_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the schema of one option, and with its default."""
    plain = {key: value for key, value in schema.items() if key != "default"}
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"its bounds and schema must be plain values: {error}"
        return
    wrong = schema_problem(plain)
    if wrong:
        yield wrong
        return
    if "default" in schema:
        told = problems(plain, schema["default"])
        yield from (f"its default: {problem.message}" for problem in told)
        if not told:
            try:
                json.dumps(schema["default"], allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                yield f"its default must be a plain value: {error}"
