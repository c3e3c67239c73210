"""What a figure is before it becomes files: the drawing, its words, and the numbers behind it."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.files import replacing, write_text
from benchmark.report.figures.style import FAINT, GRID, INK, styled

POINTS = 72  # in an inch


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


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Any, Any]:
    """Returns (figure, 2-d array of axes) of a size in inches, without pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Any, handles: dict[str, Any], columns: int = 4) -> None:
    """Puts one legend for all panels under them, where it can cover no data."""
    if handles:
        width = min(columns, len(handles))
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=width,
            handlelength=2.6,
        )


def to_svg(drawing: Drawing) -> str:
    """Returns the SVG text; equal drawings give equal bytes (no date, fixed ids)."""
    stream = io.StringIO()
    with styled():
        _lay_out(drawing.figure)
        drawing.figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def to_csv(drawing: Drawing) -> str:
    """Returns the numbers behind the figure."""
    return drawing.data.to_csv(index=False, float_format="%.8g", lineterminator="\n")


def inline_svg(svg: str, name: str, alt: str) -> str:
    """Returns the ``svg`` element for use inside a page: ids made unique, text and grid in the page's colours."""
    from html import escape

    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.S)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    for drawn, shown in (
        (INK, "currentColor"),
        (FAINT, "var(--soft)"),
        (GRID, "var(--grid)"),
        ("#ffffff", "var(--paper)"),
    ):
        body = body.replace(drawn, shown)
    label = f'role="img" aria-label="{escape(alt, quote=True)}"'
    inches = float(re.search(r'viewBox="0 0 ([\d.]+)', body).group(1)) / POINTS
    # The size in points gives way to limits: figures scale with the page, and text keeps one size across figures.
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    limits = f'style="max-width:{8 * inches:.1f}rem;min-width:{5.6 * inches:.1f}rem"'
    return f"{head} {label} {limits}>{rest}"


def save(drawing: Drawing, folder: Path, name: str) -> list[Path]:
    """Writes ``name``.svg, .pdf and .csv below ``folder`` and returns their paths."""
    svg, pdf, numbers = (folder / f"{name}.{kind}" for kind in ("svg", "pdf", "csv"))
    write_text(svg, to_svg(drawing))
    with replacing(pdf) as temporary, styled():
        metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": drawing.title}
        drawing.figure.savefig(temporary, format="pdf", metadata=metadata)
    write_text(numbers, to_csv(drawing))
    return [svg, pdf, numbers]


def _lay_out(figure: Any) -> None:
    """Gives axes and legend their places once: savefig would draw everything for it each time, and throw that away."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = figure.get_layout_engine()
    if engine is None:
        return
    figure.dpi = POINTS  # that of SVG and PDF, whose texts decide the places
    FigureCanvasSVG(figure)
    engine.execute(figure)
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
