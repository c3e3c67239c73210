"""The simulation as a figure: error rates and power of the verdict rule against the number of our seeds."""

from __future__ import annotations

import pandas as pd

from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.style import DOUBLE, INK, TONES, styled
from benchmark.stats.rule import ALPHA
from benchmark.stats.simulation import CELLS, POWER_AT

SIGMA = 0.3  # spread of a run, in margins, at which the power is drawn
REFERENCES = {
    "single": "against one published value",
    "several": "against mean and spread of 5 runs",
}
CURVES = {  # column of ``worst``: (row of panels, words, tone, marker)
    "any_drifted": (0, f"any false drifted in a table of {CELLS}", "bad", "s"),
    "reproduced_at_margin": (0, "false reproduced, at the margin", "unsure", "o"),
    f"drifted_when_far s={SIGMA:g}": (1, f"drifted, at {POWER_AT:g} margins", "bad", "D"),
    f"reproduced_when_equal s={SIGMA:g}": (1, "reproduced, when equal", "good", "^"),
}


def draw_rates(worst: pd.DataFrame, tables: int) -> Drawing:
    """Returns the figure of ``benchmark.stats.simulation.worst``: errors above, power below, a column a reference.

    A single run of ours is drawn with a spread pooled over sister cells.
    """
    shown = worst[(worst["ours_n"] > 1) | worst["pooled"]]
    handles = {}
    with styled():
        figure, axes = new_figure(DOUBLE, 4.2, 2, 2, sharex=True, sharey="row")
        for column, (reference, words) in enumerate(REFERENCES.items()):
            rows = shown[shown["reference"] == reference].sort_values("ours_n")
            for name, (panel, label, tone, marker) in CURVES.items():
                (handles[label],) = axes[panel, column].plot(
                    rows["ours_n"],
                    100 * rows[name],
                    marker=marker,
                    color=TONES[tone],
                    markerfacecolor="white",
                )
            axes[0, column].set_title(words)
            limit = axes[0, column].axhline(100 * ALPHA, color=INK, linewidth=0.8, linestyle="--")
            handles["limit, set before any run"] = limit
            axes[0, column].set_ylim(0, 10)
            axes[1, column].set_ylim(0, 104)
            axes[1, column].set_xlabel("seeds of ours")
            axes[1, column].set_xticks(sorted(shown["ours_n"].unique()))
        axes[0, 0].set_ylabel("errors (%), worst scenario")
        axes[1, 0].set_ylabel("power (%)")
        legend_below(figure, handles, columns=3)
    caption = (
        f"{tables:,} simulated tables of {CELLS} numbers a scenario. Errors are the highest over spreads of 0.1 to 3 "
        f"margins; power is that at a spread of {SIGMA:g} margins, equal on both sides."
    )
    alt = "Line charts of false drifted, false reproduced and power of the verdict rule for one to five seeds."
    return Drawing("Error rates and power of the verdict rule", caption, alt, figure, shown)
