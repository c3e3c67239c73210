"""What an analysis is before it becomes files, and the numbers and words that several print."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmark.report.drawing import Drawing
from benchmark.report.numbers import listed as joined
from benchmark.report.records import Finding, Verdict
from benchmark.report.table import Column, Table, TableCell

_VERDICTS: dict[bool | None, tuple[Verdict, str]] = {
    True: ("supported", "This agrees with the paper."),
    False: ("contradicted", "This does not agree with the paper."),
    None: ("inconclusive", "This decides neither way."),
}


@dataclass(frozen=True)
class Analysis:
    """A finished analysis; ``notes`` are sentences that judge no claim, made of the numbers too."""

    drawing: Drawing
    table: Table
    claims: list[Finding]
    notes: list[str] = field(default_factory=list)


def finding(name: str, place: str, says: str, found: str, holds: bool | None) -> Finding:
    """Return what was found about a statement: it holds, it does not, or it is open (None)."""
    verdict, judgement = _VERDICTS[holds]
    return Finding(name, place, says, found, verdict, f"{found} {judgement}")


def cells(*values: str | float, digits: int = 3) -> list[TableCell]:
    """Return a cell per value: words as they are, numbers with ``digits`` significant digits."""
    return [_cell(value, digits) for value in values]


def _cell(value: str | float, digits: int) -> TableCell:
    if isinstance(value, str):
        return TableCell(value)
    if not math.isfinite(value):
        return TableCell("")
    number = float(value) + 0.0  # no "-0"
    return TableCell(f"{number:.{digits}g}".replace("e-0", "e-"), numbers=(number,))


def numeric(*header: str) -> Column:
    """Return a column of numbers."""
    return Column(header, parts=("",))


def shades(colour: str, count: int) -> list[tuple[float, float, float]]:
    """Return ``count`` tones of a colour from light to dark, told from white and from black."""
    from matplotlib.colors import to_rgb

    base = to_rgb(colour)
    tones = []
    for index in range(count):
        depth = 2.0 * index / max(1, count - 1) - 1.0  # -1 lightest, 0 the colour itself, 1 darkest
        other, share = (1.0, -0.55 * depth) if depth < 0 else (0.0, 0.3 * depth)
        red, green, blue = (part + (other - part) * share for part in base)
        tones.append((red, green, blue))
    return tones


def listed(values: Iterable[Any], form: str = "g") -> str:
    """Return "1, 2 and 3"."""
    return joined([format(value, form) for value in values])


def rising(values: Sequence[float]) -> bool:
    """Return whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))


def decided(low: float, high: float, n: int) -> bool | None:
    """Return whether an interval over ``n`` seeds lies above 0; None when it decides nothing."""
    return low > 0 if n > 1 and (low > 0 or high < 0) else None
