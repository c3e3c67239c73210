"""The equivalence margins, which are data: ``margins.yaml`` beside this file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.reading import read_yaml

FILE = Path(__file__).parent / "margins.yaml"
Margin = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]  # percentage points


def load_margins(path: Path = FILE) -> Mapping[str, float]:
    """Return {metric name or pattern: margin in points}; raise ReferenceDataError."""
    problems: list[str] = []
    margins: Mapping[str, float] = read_yaml(path, dict[str, Margin], problems) or {}
    if problems or not margins:
        words = f"{path} must map metric names to margins in percentage points above 0, such as 1.0"
        raise ReferenceDataError("\n".join([words, *problems]))
    return margins


def margin_of(metric: str, margins: Mapping[str, float]) -> float | None:
    """Return the margin of ``metric`` in points, or None; a name goes before a pattern."""
    if metric in margins:
        return margins[metric]
    for pattern, margin in margins.items():
        if re.fullmatch(re.escape(pattern).replace(r"\*", r"\d+"), metric):
            return margin
    return None
