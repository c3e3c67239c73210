"""One style for all figures: a loss keeps its colour and marker everywhere and for ever.

The named colours start from the Okabe-Ito palette (without its yellow, too faint on white, and
black, the text's colour). Markers and dashes differ as well, so that figures survive greyscale.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SINGLE = 3.4  # inches: one column of a two-column page
DOUBLE = 7.0  # inches: the full width
FONT = 7.5  # points at print size

# Rare values on purpose: the page replaces them by its own text and line colours (dark mode).
INK = "#16181d"
GRID = "#d7dae1"
FAINT = "#6b7280"
BAND = "#8d99ae"

Dash = str | tuple[int, tuple[int, ...]]


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
_SPARE = ("#A0436B", "#4C7A34", "#5B6ABF", "#B5804A", "#3E8E8E", "#B04A3A", "#6F7F2A", "#8561A8")
_MARKERS = ("*", "d", "8", "H", "P", "X", "v", ">")
_DASHES: tuple[Dash, ...] = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (7, 2)),
)  # fmt: skip

# By tone: middle colours, to be told from white paper and from a dark page alike.
COLOURS = {"good": "#12906C", "bad": "#D0472A", "unsure": "#A3801F", "muted": "#7B8190"}


def style_of(label: str, base: str | None = None) -> LineStyle:
    """Return the style of a loss label.

    A variant of a named loss keeps its family's colour with an open marker and a dash of its own;
    another loss gets a colour from the spare palette. Both follow from the label alone, never from
    what else is drawn.
    """
    if label in STYLES:
        return STYLES[label]
    digest = hashlib.sha256(label.encode()).digest()
    marker, dash = _MARKERS[digest[1] % len(_MARKERS)], _DASHES[digest[2] % len(_DASHES)]
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
