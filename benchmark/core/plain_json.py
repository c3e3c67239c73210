"""JSON from outside: every text that is none is a ValueError.

Python's parser raises RecursionError for deep nesting, and takes NaN and Infinity, which are no
JSON.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError for anything else."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
