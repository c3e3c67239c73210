"""Numbers as people read them. Scores are in [0, 1] inside and percent (or points) in text."""

import math
from typing import Any

DASH = "–"


def finite(value: Any) -> float | None:
    """Return a finite float, or None for anything absent, non-finite or a text."""
    if value is None or isinstance(value, str):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def plain(value: Any, digits: int = 2) -> str:
    """Return a number with a fixed number of decimals and a real minus sign."""
    number = finite(value)
    return DASH if number is None else f"{number:.{digits}f}".replace("-", "−")


def whole(value: Any) -> str:
    """Return a number without decimals."""
    return plain(value, 0)


def percent(value: Any, digits: int = 2) -> str:
    """Return a score in percent without the sign: 0.8523 -> "85.23"."""
    number = finite(value)
    return DASH if number is None else f"{100 * number:.{digits}f}"


def mean_sd(mean: Any, sd: Any) -> str:
    """Return "85.23 ± 0.31" in percent; the spread is left out where there is none."""
    return percent(mean) + ("" if finite(sd) is None else f" ± {percent(sd)}")


def signed(value: Any, digits: int = 2) -> str:
    """Return a number with its sign: -0.41 -> "−0.41"."""
    number = finite(value)
    # Adding 0 turns a negative zero into a positive one.
    return DASH if number is None else f"{round(number, digits) + 0:+.{digits}f}".replace("-", "−")


def points(value: Any, digits: int = 2) -> str:
    """Return a signed difference of scores in percentage points: -0.0041 -> "−0.41"."""
    number = finite(value)
    return DASH if number is None else signed(100 * number, digits)


def interval(low: Any, high: Any, form: Any = points) -> str:
    """Return "[−0.41, +0.90]", by default in percentage points."""
    if finite(low) is None or finite(high) is None:
        return DASH
    return f"[{form(low)}, {form(high)}]"


def p_value(value: Any) -> str:
    """Return a p-value with three decimals, "<0.001" below."""
    number = finite(value)
    if number is None:
        return DASH
    return "<0.001" if number < 0.001 else f"{number:.3f}"


def duration(seconds: Any) -> str:
    """Return "1 h 05 min", "3 min 20 s" or "12.4 s"."""
    number = finite(seconds)
    if number is None:
        return DASH
    if number < 60:
        return f"{number:.1f} s"
    minutes, rest = divmod(round(number), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, noun: str) -> str:
    """Return "1 run" or "3 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: list[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def words_of(name: str) -> str:
    """Return a name from a file as words: "not_run" -> "not run"."""
    return name.replace("_", " ")
