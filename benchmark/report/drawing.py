"""What a figure is before it becomes files, and the style that all figures share.

A loss keeps its colour and marker everywhere and for ever. The named colours start from the
Okabe-Ito palette (without its yellow, too faint on white, and black, the text's colour). Markers
and dashes differ as well, so that figures survive greyscale.
"""

import contextlib
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.core.files import replacing, write_text

SINGLE = 3.4  # inches: one column of a two-column page
DOUBLE = 7.0  # inches: the full width
FONT = 7.5  # points at print size
# Rare values on purpose: the page replaces them by its own text and line colours (dark mode).
INK = "#16181d"
GRID = "#d7dae1"
FAINT = "#6b7280"
BAND = "#8d99ae"
Dash = str | tuple[int, tuple[int, ...]]
_SPARE = ("#A0436B", "#4C7A34", "#5B6ABF", "#B5804A", "#3E8E8E", "#B04A3A", "#D4327C", "#8561A8")
_SALT = "1647"  # by which no two registered losses have one colour and marker
_MARKERS = ("*", "d", "8", "H", "P", "X", "v", ">")
_DASHES: tuple[Dash, ...] = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (7, 2)),
)  # fmt: skip
# By tone: middle colours, to be told from white paper and from a dark page alike.
COLOURS = {"good": "#12906C", "bad": "#D0472A", "unsure": "#A3801F", "muted": "#7B8190"}
POINTS = 72  # in an inch
MOVED = "Points are moved sideways so that none covers another."
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
class LineStyle:
    """Colour, marker and dash of one loss; ``open`` markers belong to named variants."""

    colour: str
    marker: str
    dash: Dash = "-"
    open: bool = False


STYLES = {
    "smooth_ap": LineStyle("#0072B2", "o", "-"),
    "sup_ap": LineStyle("#E69F00", "s", "--"),
    "roadmap": LineStyle("#D55E00", "D", "-"),
    "fast_ap": LineStyle("#009E73", "^", "-."),
    "softbin_ap": LineStyle("#CC79A7", "v", "--"),
    "blackbox_ap": LineStyle("#56B4E9", "P", ":"),
    "calibration": LineStyle("#7d7d7d", "X", "-."),
    "triplet_semihard": LineStyle("#8C5A2B", "<", "--"),
    "triplet_per_anchor": LineStyle("#A0522D", "8", ":"),
    "contrastive": LineStyle("#7B4FB3", ">", ":"),
    "cosine_contrastive": LineStyle("#A64FB3", "H", ":"),
    "normalized_softmax": LineStyle("#8F8F1A", "h", "-"),
    "proxy_nca": LineStyle("#1F8795", "p", "-."),
    "proxy_nca_others": LineStyle("#4A9AA5", "4", ":"),
}


# For series that are no losses (metrics, datasets): they must not borrow a loss's colour.
SERIES = (
    LineStyle("#2F77A8", "o", "-"),
    LineStyle("#A0436B", "s", "--"),
    LineStyle("#4C7A34", "^", "-."),
    LineStyle("#8561A8", "D", ":"),
)


def style_of(label: str, base: str | None = None) -> LineStyle:
    """Return the style of a loss label, which follows from the label alone.

    A variant of a named loss keeps its colour with an open marker and a dash of its own; another
    loss gets a colour from the spare palette.
    """
    if label in STYLES:
        return STYLES[label]
    digest = hashlib.sha256(f"{_SALT}{label}".encode()).digest()
    marker = _MARKERS[digest[1] % len(_MARKERS)]
    dash = _DASHES[digest[2] % len(_DASHES)]
    if base in STYLES:
        return LineStyle(STYLES[base].colour, marker, dash, open=True)
    return LineStyle(_SPARE[digest[0] % len(_SPARE)], marker, dash)


def line(style: str | LineStyle, base: str | None = None) -> dict[str, Any]:
    """Return how matplotlib's ``plot`` and ``errorbar`` draw a loss label or a style."""
    found = style_of(style, base) if isinstance(style, str) else style
    return {
        "color": found.colour,
        "marker": found.marker,
        "linestyle": found.dash,
        "markerfacecolor": "white" if found.open else found.colour,
        "markeredgecolor": found.colour,
    }


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw inside with the project's fonts, sizes and reproducible SVG ids."""
    import matplotlib

    sizes = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor")
    settings: dict[Any, Any] = {
        **dict.fromkeys(sizes, FONT),
        **dict.fromkeys((*inks, "xtick.color", "ytick.color"), INK),
        "font.family": "DejaVu Sans",
        "axes.titlesize": FONT + 0.5,
        "axes.titlelocation": "left",
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "axes.axisbelow": True,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.linewidth": 1.1,
        "lines.markersize": 4,
        "errorbar.capsize": 1.5,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "figure.dpi": 100,
        "svg.hashsalt": "ranking-losses",
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
        "axes.unicode_minus": True,
    }
    with matplotlib.rc_context(settings):
        yield


@dataclass(frozen=True)
class Drawing:
    """A finished figure, with the numbers behind it, one row per mark.

    ``alt`` is what a person who cannot see it should know: the kind of plot and its main finding.
    """

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
    """Put one legend for all panels below them; each label is named once, in the order of drawing.

    ``last`` is the label that ends the legend, and the key that stands for it.
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
    """Return the ``svg`` element for a page: own ids, its colours, attributes for inline styles."""

    def attributes(style: re.Match[str]) -> str:
        pairs = (one.split(":", 1) for one in style[1].split(";") if ":" in one)
        return " ".join(f'{key.strip()}="{value.strip()}"' for key, value in pairs)

    body = svg[svg.index("<svg") :].replace("xlink:href=", "href=")
    body = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->\s*", "", body, flags=re.S)
    body = _STYLE.sub(attributes, body)
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


def size_rules(elements: Iterable[str]) -> str:
    """Return the CSS for the sizes of these ``svg`` elements; a page allows no inline styles."""
    tenths = {int(size) for element in elements for size in _SIZE.findall(element[:2000])}
    return "\n".join(
        f".wide-{size} {{ max-width: {0.8 * size:.1f}rem; min-width: {0.56 * size:.1f}rem; }}"
        for size in sorted(tenths)
    )


def save(drawing: Drawing, folder: Path, name: str, title: str) -> dict[str, str]:
    """Write ``name``.svg, .pdf and .csv below ``folder``; return the texts of SVG and CSV."""
    numbers = drawing.data.to_csv(index=False, float_format="%.8g", lineterminator="\n")
    texts = {"svg": to_svg(drawing), "csv": numbers}
    for kind, text in texts.items():
        write_text(folder / f"{name}.{kind}", text)
    with replacing(folder / f"{name}.pdf") as temporary, styled():
        metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": title}
        drawing.figure.savefig(temporary, format="pdf", metadata=metadata)
    return texts


class Series(NamedTuple):
    """One line of a panel; ``points``: batch_size, mean, low, high; NaN bounds draw no bar."""

    label: str
    style: dict[str, Any]
    points: pd.DataFrame


def bars(
    points: pd.DataFrame, middle: str = "mean", low: str = "low", high: str = "high"
) -> list[pd.Series]:
    """Return the lengths of error bars below and above the middles; 0 where there is no bound."""
    lengths = (points[middle] - points[low], points[high] - points[middle])
    return [each.astype(float).fillna(0) for each in lengths]


def by_batch_size(
    axes: Any, sizes: Sequence[int], series: Iterable[Series], width: float = 0.5
) -> None:
    """Draw every series over the batch sizes, moved sideways so that none covers another."""
    series = list(series)
    for (label, style, points), offset in zip(series, dodge(len(series), width), strict=True):
        if len(points):
            ordered = points.sort_values("batch_size")
            where = [sizes.index(size) + offset for size in ordered["batch_size"]]
            axes.errorbar(where, ordered["mean"], yerr=bars(ordered), **style, label=label)
    batch_axis(axes, sizes)


def dodge(count: int, width: float = 0.5) -> np.ndarray:
    """Return horizontal offsets (count,) that keep marks at one position apart."""
    return np.zeros(1) if count < 2 else np.linspace(-width / 2, width / 2, count)


def batch_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Give equally spaced ticks to batch sizes, which are categories here."""
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("batch size (images)")


def row_axis(axes: Any, names: Sequence[str]) -> None:
    """Name the rows of a plot from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
