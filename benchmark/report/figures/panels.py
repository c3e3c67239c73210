"""Small multiples: which panels a figure has, and points that stand beside each other over a batch size."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmark.report.tables.labels import place_label

PANELS = 6  # in one figure; more are left to the CSV, and the caption says so


def bases(runs: pd.DataFrame) -> dict[str, str]:
    """Returns the registry name of each loss label."""
    return dict(runs[["loss", "base_loss"]].drop_duplicates().astype(str).to_numpy().tolist())


def dodge(count: int, width: float = 0.5) -> np.ndarray:
    """Returns horizontal offsets (count,) that keep marks at one position apart."""
    return np.zeros(1) if count < 2 else np.linspace(-width / 2, width / 2, count)


def batch_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Gives equally spaced ticks to batch sizes, which are categories here."""
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("batch size (images)")


def place_title(place: tuple, several: bool, *more: str) -> str:
    """Returns a panel's title; the place is named only where the figure has several, on lines of its own."""
    named = textwrap.wrap(place_label(*place), 32, break_long_words=False) if several else []
    return "\n".join([*named, *([" · ".join(more)] if more else [])])


def span(values: pd.Series) -> str:
    """Returns "81.2 to 85.9" in percent, for alternative texts."""
    return f"{100 * values.min():.1f} to {100 * values.max():.1f}"
