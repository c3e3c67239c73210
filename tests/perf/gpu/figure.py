"""A figure without a library for figures: time of losses over the batch size, both logarithmic."""

from __future__ import annotations

import html
import math
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT = 760, 420, 70, 50, 230
# Okabe and Ito's colours, which readers without red or green can tell apart.
COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#999999")
DASHES = ("", "6 3", "2 3")


def times_figure(rows: list[dict[str, Any]]) -> str:
    """Return an SVG of milliseconds over batch size, a line for each method."""
    points = [row for row in rows if row.get("milliseconds")]
    if not points:
        return "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'/>"
    across = _scale([row["batch_size"] for row in points], LEFT, WIDTH - RIGHT)
    up = _scale([row["milliseconds"] for row in points], HEIGHT - BOTTOM, 20)
    marks = [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "batch size (images)")]
    turn = f"rotate(-90 16 {HEIGHT / 2})"
    marks.append(_text(16, HEIGHT / 2, "forward + backward (ms)", f"transform='{turn}'"))
    for size in sorted({row["batch_size"] for row in points}):
        marks.append(_text(across(size), HEIGHT - BOTTOM + 18, f"{size}"))
    low, high = (f(row["milliseconds"] for row in points) for f in (min, max))
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        if low <= 10**power <= high:
            place = up(10**power)
            marks.append(_line([(LEFT, place), (WIDTH - RIGHT, place)], "#dddddd", ""))
            marks.append(_text(LEFT - 22, place + 4, f"{10.0**power:g}"))
    for number, name in enumerate(dict.fromkeys(row["method"] for row in points)):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        own = [row for row in points if row["method"] == name]
        line = [(across(row["batch_size"]), up(row["milliseconds"])) for row in own]
        level = 24 + 18 * number
        marks.append(_line(line, colour, dash))
        marks.append(
            _line([(WIDTH - RIGHT + 14, level), (WIDTH - RIGHT + 40, level)], colour, dash)
        )
        marks.append(_text(WIDTH - RIGHT + 46, level + 4, name, "text-anchor='start'"))
    size = f"width='{WIDTH}' height='{max(HEIGHT, 40 + 18 * number)}'"
    style = "font-family='sans-serif' font-size='12' text-anchor='middle'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>{''.join(marks)}</svg>"


def _scale(values: list[float], first: float, last: float) -> Any:
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: first + (last - first) * (math.log(value) - low) / max(high - low, 1e-9)


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{html.escape(words)}</text>"


def _line(points: list[tuple[float, float]], colour: str, dash: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = f"fill='none' stroke='{colour}' stroke-width='1.6' stroke-dasharray='{dash}'"
    return f"<polyline points='{path}' {drawn}/>"
