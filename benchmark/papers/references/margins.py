"""The equivalence margins, which are data: ``margins.yaml`` beside this file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from benchmark.core.errors import ReferenceDataError

FILE = Path(__file__).parent / "margins.yaml"


def load_margins(path: Path | None = None) -> dict[str, float]:
    """Returns {metric name or pattern: margin in percentage points}; raises naming the key."""
    path = Path(path or FILE)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ReferenceDataError(f"{path} cannot be read as YAML ({error})") from error
    if not isinstance(data, dict) or not data:
        raise ReferenceDataError(f"{path} must map metric names to margins in percentage points")
    for key, value in data.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0:
            raise ReferenceDataError(
                f"{path}, key {key}: '{value}' is not a margin; allowed: points above 0, such as 1.0"
            )
    return {str(key): float(value) for key, value in data.items()}


def margin_of(metric: str, margins: Mapping[str, float]) -> float | None:
    """Returns the margin of ``metric`` in percentage points, or None; an exact name goes before a pattern."""
    if metric in margins:
        return margins[metric]
    for pattern, margin in margins.items():
        if re.fullmatch(re.escape(pattern).replace(r"\*", r"\d+"), metric):
            return margin
    return None
