"""Numbers as people read them. Scores are in [0, 1] inside and percent (or points) in text."""

from __future__ import annotations

import math
from typing import Any

DASH = "–"


def known(value: Any) -> float | None:
    """Returns a finite float, or None for anything absent, NaN or infinite."""
    if value is None or isinstance(value, str):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def percent(value: Any, digits: int = 2) -> str:
    """Returns a score in percent without the sign: 0.8523 -> "85.23"."""
    number = known(value)
    return DASH if number is None else f"{100 * number:.{digits}f}"


def mean_sd(mean: Any, sd: Any, digits: int = 2) -> str:
    """Returns "85.23 ± 0.31" in percent; the spread is left out where there is none."""
    spread = known(sd)
    return percent(mean, digits) + ("" if spread is None else f" ± {100 * spread:.{digits}f}")


def points(value: Any, digits: int = 2) -> str:
    """Returns a signed difference of scores in percentage points: -0.0041 -> "−0.41"."""
    number = known(value)
    # Adding 0 turns a negative zero into a positive one.
    return (
        DASH
        if number is None
        else f"{round(100 * number, digits) + 0:+.{digits}f}".replace("-", "−")
    )


def interval(low: Any, high: Any, digits: int = 2) -> str:
    """Returns "[−0.41, +0.90]" in percentage points."""
    if known(low) is None or known(high) is None:
        return DASH
    return f"[{points(low, digits)}, {points(high, digits)}]"


def p_value(value: Any) -> str:
    """Returns a p-value with three decimals, "<0.001" below."""
    number = known(value)
    if number is None:
        return DASH
    return "<0.001" if number < 0.001 else f"{number:.3f}"


def plain(value: Any, digits: int = 2) -> str:
    """Returns a number with a fixed number of decimals and a real minus sign."""
    number = known(value)
    return DASH if number is None else f"{number:.{digits}f}".replace("-", "−")


def duration(seconds: Any) -> str:
    """Returns "1 h 05 min", "3 min 20 s" or "12.4 s"."""
    number = known(seconds)
    if number is None:
        return DASH
    if number < 60:
        return f"{number:.1f} s"
    minutes, rest = divmod(round(number), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, noun: str) -> str:
    """Returns "1 run" or "3 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
