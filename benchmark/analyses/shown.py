"""Small helpers that several analyses draw and tabulate with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from benchmark.report.tables.table import Cell, Column


def number(value: float, digits: int = 3) -> Cell:
    """Returns a cell with ``digits`` significant digits that keeps the full number behind it."""
    value = float(value) + 0.0  # no "-0"
    return Cell(f"{value:.{digits}g}".replace("e-0", "e-"), numbers=(value,))


def numeric(*header: str) -> Column:
    """Returns a column for cells made by ``number``."""
    return Column(header, parts=("",))


def shades(colour: str, count: int) -> list[tuple[float, float, float]]:
    """Returns ``count`` tones of a colour from light to dark, all to be told from white and from black."""
    from matplotlib.colors import to_rgb

    base = to_rgb(colour)
    tones = []
    for index in range(count):
        place = 2.0 * index / max(1, count - 1) - 1.0  # -1 lightest, 0 the colour itself, 1 darkest
        other, share = (1.0, -0.55 * place) if place < 0 else (0.0, 0.3 * place)
        tones.append(tuple(part + (other - part) * share for part in base))
    return tones


def listed(values: Sequence[Any], form: str = "g") -> str:
    """Returns "1, 2 and 3"."""
    words = [format(value, form) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def rising(values: Sequence[float]) -> bool:
    """Returns whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))
