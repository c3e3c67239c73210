"""The equivalence margins, which are data: ``margins.yaml`` beside this file."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.reading import read_yaml

FILE = Path(__file__).parent / "margins.yaml"
Margin = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]  # percentage points
Height = Annotated[float, Field(ge=0, lt=100)]  # score in percent
Margins = Mapping[str, Mapping[float, float]]


def _steps(value: Any) -> Any:
    return value if isinstance(value, list) else [(0, value)]


Steps = Annotated[list[tuple[Height, Margin]], BeforeValidator(_steps)]


def load_margins(path: Path = FILE) -> Margins:
    """Return {metric name or pattern: {score from which on: margin}}; raise ReferenceDataError.

    The file has a list of [score, margin] for each metric, or one margin for every score.
    """
    problems: list[str] = []
    read = read_yaml(path, dict[str, Steps], problems) or {}
    margins = {name: dict(steps) for name, steps in read.items()}
    problems += [
        f"{path}: {name} has no margin from score 0 on; write [[0, 1.0]]"
        for name, by_height in margins.items()
        if 0 not in by_height
    ]
    if problems or not margins:
        words = f"{path} must map metric names to margins in percentage points above 0, such as 1.0"
        raise ReferenceDataError("\n".join([words, *problems]))
    return margins


def margin_of(metric: str, margins: Margins, score: float = math.nan) -> float | None:
    """Return the margin of ``metric`` for a reference of ``score`` percent (NaN: as for 0).

    None for a metric without one; a name goes before a pattern.
    """
    by_height = margins.get(metric) or next(
        (
            heights
            for pattern, heights in margins.items()
            if re.fullmatch(re.escape(pattern).replace(r"\*", r"\d+"), metric)
        ),
        None,
    )
    if by_height is None:
        return None
    return by_height[max((height for height in by_height if height <= score), default=0.0)]
