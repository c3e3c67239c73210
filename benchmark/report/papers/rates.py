"""The simulation as a figure: errors and power of the verdict rule by number of seeds."""

from __future__ import annotations

import pandas as pd

from benchmark.report.drawing.drawing import Drawing, legend_below, new_figure
from benchmark.report.drawing.style import COLOURS, DOUBLE, INK, styled
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
    """Return the figure of ``simulation.worst``: errors above, power below, a column per reference.

    A single run of ours is drawn with a spread pooled over sister cells.
    """
    shown = worst[(worst["ours_n"] > 1) | worst["pooled"]]
    with styled():
        figure, axes = new_figure(DOUBLE, 4.2, 2, 2, sharex=True, sharey="row")
        for column, (reference, words) in enumerate(REFERENCES.items()):
            rows = shown[shown["reference"] == reference].sort_values("ours_n")
            for name, (panel, label, tone, marker) in CURVES.items():
                axes[panel, column].plot(
                    rows["ours_n"],
                    100 * rows[name],
                    marker=marker,
                    color=COLOURS[tone],
                    markerfacecolor="white",
                    label=label,
                )
            axes[0, column].set_title(words)
            dashed = {"color": INK, "linewidth": 0.8, "linestyle": "--"}
            axes[0, column].axhline(100 * ALPHA, label="limit, set before any run", **dashed)
            axes[0, column].set_ylim(0, 10)
            axes[1, column].set_ylim(0, 104)
            axes[1, column].set_xlabel("seeds of ours")
            axes[1, column].set_xticks(sorted(shown["ours_n"].unique()))
        axes[0, 0].set_ylabel("errors (%), worst scenario")
        axes[1, 0].set_ylabel("power (%)")
        legend_below(figure, columns=3)
    caption = (
        f"{tables:,} simulated tables of {CELLS} numbers a scenario. Errors are the highest over "
        f"spreads of 0.1 to 3 margins; power is that at a spread of {SIGMA:g} margins, equal on "
        "both sides."
    )
    alt = (
        "Line charts of false drifted, false reproduced and power of the verdict rule for one to "
        "five seeds."
    )
    return Drawing("Error rates and power of the verdict rule", caption, alt, figure, shown)
