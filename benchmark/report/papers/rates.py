"""The simulation as a figure: errors and power of the verdict rule by number of seeds."""

import pandas as pd

from benchmark.report.drawing.drawing import Drawing, legend_below, new_figure
from benchmark.report.drawing.style import COLOURS, DOUBLE, INK, styled
from benchmark.stats.reproduction import ALPHA
from benchmark.stats.simulations.rates import DRIFT
from benchmark.stats.simulations.world import PAIRED, SEVERAL, SINGLE

REFERENCES = {
    SINGLE: "one published value",
    SEVERAL: "mean and spread of 5 runs",
    PAIRED: "frozen runs, same seeds",
}
CURVES = {  # column of the table: (row of panels, words, tone, marker)
    "any_drifted": (0, "any false drift in a table", "bad", "s"),
    "reproduced_at_margin": (0, "false reproduced, at the margin", "unsure", "o"),
    "drift_seen": (1, f"drift of {DRIFT:g} points called", "bad", "D"),
    "confirmed": (1, "equal number reproduced", "good", "^"),
}
LINES = {"shared spread": "-", "plain t test": ":"}


def draw_rates(table: pd.DataFrame, tables: int) -> Drawing:
    """Return the figure of ``benchmark.stats.simulations.report.rule_table``.

    Errors above, power below, a column a kind of reference; dotted: without shared spreads.
    """
    with styled():
        figure, axes = new_figure(DOUBLE, 4.2, 2, len(REFERENCES), sharex=True, sharey="row")
        for column, (reference, words) in enumerate(REFERENCES.items()):
            for rule, line in LINES.items():
                chosen = (table["reference"] == reference) & (table["rule"] == rule)
                rows = table[chosen].sort_values("seeds")
                for name, (panel, label, tone, marker) in CURVES.items():
                    axes[panel, column].plot(
                        rows["seeds"].astype(str),
                        100 * rows[name],
                        marker=marker,
                        linestyle=line,
                        color=COLOURS[tone],
                        markerfacecolor="white",
                        label=label if line == "-" else None,
                    )
            axes[0, column].set_title(words)
            dashed = {"color": INK, "linewidth": 0.8, "linestyle": "--"}
            axes[0, column].axhline(100 * ALPHA, label="limit, set before any run", **dashed)
            axes[0, column].set_ylim(0, 10)
            axes[1, column].set_ylim(0, 104)
            axes[1, column].set_xlabel("seeds of ours")
        axes[0, 0].set_ylabel("errors (%)")
        axes[1, 0].set_ylabel("power (%)")
        legend_below(figure, columns=3)
    caption = (
        f"{tables:,} simulated tables of 30 numbers a point, margin 1 point; power at a spread of "
        "0.3 points. Solid: spreads shared over sister cells; dotted: the plain t test."
    )
    alt = "Line charts of false drifts, false confirmations and power against two to ten seeds."
    return Drawing("Error rates and power of the verdict rule", caption, alt, figure, table)
