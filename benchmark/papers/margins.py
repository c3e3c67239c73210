"""The equivalence margins, which are data: ``margins.yaml`` beside this file."""

import functools
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from benchmark.papers.reading import read_own

FILE = Path(__file__).parent / "margins.yaml"
Margin = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]  # percentage points
Height = Annotated[float, Field(ge=0, lt=100)]  # score in percent
Margins = Mapping[str, Mapping[float, float]]


def _steps(value: Any) -> Any:
    return value if isinstance(value, list) else [(0, value)]


Steps = Annotated[list[tuple[Height, Margin]], BeforeValidator(_steps)]


@functools.cache
def load_margins() -> Margins:
    """Return {metric name or pattern: {score from which on: margin}}.

    The file has a list of [score, margin] for each metric, or one margin for every score.
    """
    read = read_own(FILE, dict[str, Steps])
    return {name: dict(steps) for name, steps in read.items()}


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
