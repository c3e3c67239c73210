"""Write numbers, counts, durations and lists for people; scores in [0, 1] become percent."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

DASH = "–"


def finite(value: Any) -> float | None:
    """Return a finite float; None for None, a text or a number that is not finite."""
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
    """Return "85.23 ± 0.31" in percent; "85.23" without a spread."""
    if finite(sd) is None:
        return percent(mean)
    return f"{percent(mean)} ± {percent(sd)}"


def signed(value: Any, digits: int = 2) -> str:
    """Return a number with its sign: -0.41 -> "−0.41"."""
    number = finite(value)
    if number is None:
        return DASH
    # Adding 0 turns a negative zero into a positive one.
    return f"{round(number, digits) + 0:+.{digits}f}".replace("-", "−")


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


def rough_duration(seconds: float | None) -> str:
    """Return "3 h 05 min", "12 min" or "40 s"; "?" when unknown."""
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, noun: str) -> str:
    """Return "1 run", "3 runs" or "3 losses"."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}es" if noun.endswith("s") else f"{number} {noun}s"


def listed(values: Iterable[Any], form: str = "") -> str:
    """Return "a", "a and b" or "a, b and c"; ``form`` formats each value: ".2f"."""
    *others, last = [format(value, form) for value in values]
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def first_of(values: Sequence[object], most: int = 20) -> list[str]:
    """Return the first ``most`` values as texts, and the number of the others."""
    texts = list(map(str, values[:most]))
    if len(values) > most:
        texts.append(f"and {len(values) - most:,} more")
    return texts


def one_a_line(values: Sequence[object], most: int = 20) -> str:
    """Return the values as ``first_of`` does, one on each line."""
    # a name that is not UTF-8 could not be printed
    names = [text.encode(errors="backslashreplace").decode() for text in first_of(values, most)]
    return "".join(f"\n      {name}" for name in names)


def words_of(name: str) -> str:
    """Return a name from a file as words: "not_run" -> "not run"."""
    return name.replace("_", " ")
