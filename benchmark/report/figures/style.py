"""One look for all figures: a loss keeps its colour and marker everywhere and for ever.

The named colours start from the Okabe-Ito palette (without its yellow, too faint on white, and black, the text's
colour). Markers and dashes differ as well, so that figures survive greyscale print.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

SINGLE = 3.4  # inches: one column of a two-column page
DOUBLE = 7.0  # inches: the full width
FONT = 7.5  # points at print size

# Rare values on purpose: the page replaces them by its own text and line colours (dark mode).
INK = "#16181d"
GRID = "#d7dae1"
FAINT = "#6b7280"
BAND = "#8d99ae"


@dataclass(frozen=True)
class Look:
    """Colour, marker and dash of one loss; ``open`` markers belong to named variants."""

    colour: str
    marker: str
    dash: str | tuple = "-"
    open: bool = False


LOOKS = {
    "smooth_ap": Look("#0072B2", "o", "-"),
    "sup_ap": Look("#E69F00", "s", "--"),
    "roadmap": Look("#D55E00", "D", "-"),
    "fast_ap": Look("#009E73", "^", "-."),
    "softbin_ap": Look("#CC79A7", "v", "--"),
    "blackbox_ap": Look("#56B4E9", "P", ":"),
    "calibration": Look("#7d7d7d", "X", "-."),
    "triplet_semihard": Look("#8C5A2B", "<", "--"),
    "contrastive": Look("#7B4FB3", ">", ":"),
    "cosine_contrastive": Look("#A64FB3", "p", ":"),
    "normalized_softmax": Look("#8F8F1A", "h", "-"),
    "proxy_nca": Look("#1F8795", "p", "-."),
}
_SPARE = ("#A0436B", "#4C7A34", "#5B6ABF", "#B5804A", "#3E8E8E", "#B04A3A", "#6F7F2A", "#8561A8")
_MARKERS = ("*", "d", "8", "H", "P", "X", "v", ">")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (7, 2)))

# Middle tones, to be told from white paper and from a dark page alike.
TONES = {"good": "#12906C", "bad": "#D0472A", "unsure": "#A3801F", "muted": "#7B8190"}


def look(label: str, base: str | None = None) -> Look:
    """Returns the look of a loss label.

    A variant of a known loss keeps its family's colour with an open marker and a dash of its own; an unknown
    loss gets a colour from the spare palette. Both follow from the label alone, never from what else is drawn.
    """
    if label in LOOKS:
        return LOOKS[label]
    digest = hashlib.sha256(label.encode()).digest()
    marker, dash = _MARKERS[digest[1] % len(_MARKERS)], _DASHES[digest[2] % len(_DASHES)]
    if base in LOOKS:
        return Look(LOOKS[base].colour, marker, dash, open=True)
    return Look(_SPARE[digest[0] % len(_SPARE)], marker, dash)


def line(label: str, base: str | None = None) -> dict:
    """Returns the keyword arguments that draw ``label`` with matplotlib's ``plot`` and ``errorbar``."""
    found = look(label, base)
    face = "white" if found.open else found.colour
    return {
        "color": found.colour,
        "marker": found.marker,
        "linestyle": found.dash,
        "markerfacecolor": face,
        "markeredgecolor": found.colour,
    }


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draws inside with the project's fonts, sizes and reproducible SVG ids, without touching the user's settings."""
    import matplotlib

    settings = {
        "font.family": "DejaVu Sans",
        "font.size": FONT,
        "axes.titlesize": FONT + 0.5,
        "axes.labelsize": FONT,
        "xtick.labelsize": FONT,
        "ytick.labelsize": FONT,
        "legend.fontsize": FONT,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "axes.titlecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
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
