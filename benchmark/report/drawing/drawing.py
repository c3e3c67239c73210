"""What a figure is before it becomes files: the drawing, its words, and the numbers behind it."""

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.files import replacing, write_text
from benchmark.report.drawing.style import FAINT, GRID, INK, styled

POINTS = 72  # in an inch
KINDS = ("svg", "pdf", "csv")
TICK = "$\\mathdefault"  # of the numbers that matplotlib writes at an axis
_STYLE = re.compile(r'(?<=\s)style="([^"]*)"')
_SIZE = re.compile(r'class="wide-(\d+)"')
_ON_THE_PAGE = {
    INK: "currentColor",
    FAINT: "var(--soft)",
    GRID: "var(--grid)",
    "#ffffff": "var(--paper)",
}


@dataclass(frozen=True)
class Drawing:
    """A finished figure.

    caption  what is drawn and how it was made, for the page and the paper
    alt      what a person who cannot see it should know: the kind of plot and its main finding
    figure   a matplotlib Figure that no window manager knows
    data     the numbers behind it, one row per mark
    """

    title: str
    caption: str
    alt: str
    figure: Any
    data: pd.DataFrame

    def __post_init__(self) -> None:
        from matplotlib.text import Text

        for text in self.figure.findobj(Text):
            if not text.get_text().startswith(TICK):
                text.set_text(plain(text.get_text()))


def plain(words: str) -> str:
    """Return words in which no dollar sign starts a formula: matplotlib would read it as TeX."""
    return re.sub(r"(?<!\\)\$", r"\\$", words)


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Any, Any]:
    """Return (figure, 2-d array of axes) of a size in inches, without pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Any, columns: int = 4, last: tuple[str, Any] | None = None) -> None:
    """Put one legend for all panels under them, where it can cover no data.

    Each label is named once, in the order of drawing; ``last`` is the label that ends the legend,
    and the key that stands for it.
    """
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if last and handles.pop(last[0], None):
        handles[last[0]] = last[1]
    if handles:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(columns, len(handles)),
            handlelength=2.6,
        )


def to_svg(drawing: Drawing) -> str:
    """Return the SVG text; equal drawings give equal bytes (no date, fixed ids)."""
    stream = io.StringIO()
    with styled():
        drawing.figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def inline_svg(svg: str, name: str, alt: str) -> str:
    """Return the ``svg`` element for a page: ids made unique, text and grid in its colours.

    A page allows no inline styles, so they become attributes.
    """
    body = svg[svg.index("<svg") :].replace("xlink:href=", "href=")
    body = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->\s*", "", body, flags=re.S)
    body = _STYLE.sub(_attributes, body)
    prefix = re.sub(r"[^\w-]", "_", name)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", body)
    for drawn, on_the_page in _ON_THE_PAGE.items():
        body = body.replace(drawn, on_the_page)
    # A class with limits replaces the size: a figure scales with the page, its text does not.
    head, rest = body.split(">", 1)
    width = re.search(r'viewBox="0 0 (\d{1,6}(\.\d+)?) ', head)
    inches = float(width[1]) / POINTS if width else 0.0
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    # what matplotlib says of all elements in its style sheet
    head += ' stroke-linejoin="round" stroke-linecap="butt"'
    label = f'role="img" aria-label="{escape(alt, quote=True)}"'
    return f'{head} {label} class="wide-{round(10 * inches)}">{rest}'


def _attributes(style: re.Match[str]) -> str:
    """Return the declarations of a ``style`` attribute as attributes."""
    pairs = (one.split(":", 1) for one in style[1].split(";") if ":" in one)
    return " ".join(f'{key.strip()}="{value.strip()}"' for key, value in pairs)


def size_rules(elements: Iterable[str]) -> str:
    """Return the CSS for the sizes of these ``svg`` elements; a page allows no inline styles."""
    tenths = {int(size) for element in elements for size in _SIZE.findall(element[:2000])}
    return "\n".join(
        f".wide-{size} {{ max-width: {0.8 * size:.1f}rem; min-width: {0.56 * size:.1f}rem; }}"
        for size in sorted(tenths)
    )


def save(drawing: Drawing, folder: Path, name: str) -> list[Path]:
    """Write ``name``.svg, .pdf and .csv below ``folder`` and return their paths."""
    svg, pdf, numbers = (folder / f"{name}.{kind}" for kind in KINDS)
    write_text(svg, to_svg(drawing))
    with replacing(pdf) as temporary, styled():
        metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": drawing.title}
        drawing.figure.savefig(temporary, format="pdf", metadata=metadata)
    write_text(numbers, drawing.data.to_csv(index=False, float_format="%.8g", lineterminator="\n"))
    return [svg, pdf, numbers]
