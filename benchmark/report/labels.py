"""Names and numbers as people read them; scores are in [0, 1] inside, in percent or points here."""

import functools
import math
from collections.abc import Sequence
from typing import Any

from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import display_name

DASH = "–"
metric_label = display_name


@functools.cache
def _datasets() -> dict[str, str]:
    from benchmark.datasets import DATASETS

    return {entry.name: entry.display for entry in DATASETS}


def loss_name(name: str) -> str:
    """Return the display name of a registered loss: "SmoothAP"; other names are kept."""
    facts = load_catalogue().get(name)
    return facts.display if facts else name


def dataset_name(label: str) -> str:
    """Return the display name of a registered dataset: "iNaturalist-2018"; others are kept."""
    return _datasets().get(label, label)


def dataset_label(dataset: str, setting: str = "", split: str = "test") -> str:
    """Return where a number was measured, "Glyphs-1k · test_resnet"; "test" is not named."""
    parts = [dataset_name(dataset), setting, "" if split == "test" else split]
    return " · ".join(part for part in parts if part)


def condition_label(row: Any) -> str:
    """Return the heading of runs that are compared with each other, of a row with its columns."""
    where = dataset_label(row.dataset, row.setting, getattr(row, "split", "test"))
    return f"{where} · batch size {row.batch_size}"


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


def points(value: Any) -> str:
    """Return a signed difference of scores in percentage points: -0.0041 -> "−0.41"."""
    number = finite(value)
    return DASH if number is None else signed(100 * number)


def interval(low: Any, high: Any, form: Any = points) -> str:
    """Return "[−0.41, +0.90]", by default in percentage points."""
    if finite(low) is None or finite(high) is None:
        return DASH
    return f"[{form(low)}, {form(high)}]"


def p_value(value: Any) -> str:
    """Return a p-value with three decimals, "<0.001" below."""
    number = finite(value)
    return DASH if number is None else "<0.001" if number < 0.001 else f"{number:.3f}"


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
    """Return "1 run", "3 runs" or "3 losses"."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def listed(parts: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def words_of(name: str) -> str:
    """Return a name from a file as words: "not_run" -> "not run"."""
    return name.replace("_", " ")
