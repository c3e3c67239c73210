"""Write ``docs/background/error_rates.md`` and its figure: ``make error-rates``.

Exit status 1 when a goal that was set before any simulation is missed by more than Monte Carlo
error.
"""

import sys
from pathlib import Path

import pandas as pd
from error_rates.budgets import rank_worlds
from error_rates.claims import beyond_limits, claim_table
from error_rates.tables import frontier_table, missed_goals, rule_table, sequence_table, world_table
from error_rates.world import DRIFT, PAIRED, SEVERAL, SINGLE

from benchmark.report.drawing import (
    COLOURS,
    DOUBLE,
    INK,
    Drawing,
    legend_below,
    new_figure,
    styled,
    to_svg,
)
from benchmark.stats.reproduction import ALPHA

TEMPLATE = Path(__file__).with_name("page.md")
OUT = Path(__file__).parents[2] / "docs" / "background"
REFERENCES = {SINGLE: "one value", SEVERAL: "five runs", PAIRED: "frozen runs"}
CURVES = {  # column of the table: (row of panels, words, tone, marker)
    "any_drifted": (0, "any false drift in a table", "bad", "s"),
    "reproduced_at_margin": (0, "false reproduced, at the margin", "unsure", "o"),
    "drift_seen": (1, f"drift of {DRIFT:g} points called", "bad", "D"),
    "confirmed": (1, "equal number reproduced", "good", "^"),
}


def rows_of(table: pd.DataFrame, by: list[str], columns: list[str]) -> str:
    """Return a row of Markdown for each ``by``: rates in percent, "/" between its rows."""
    lines = []
    for key, group in table.groupby(by, sort=False):
        cells = [" / ".join(f"{100 * value:.1f}" for value in group[name]) for name in columns]
        lines.append(f"| {' | '.join(map(str, [*key, *cells]))} |")
    return "\n".join(lines)


def draw_rates(table: pd.DataFrame, tables: int) -> Drawing:
    """Return the figure of ``rule_table``: errors above, power below; dotted: plain t test."""
    with styled():
        figure, axes = new_figure(DOUBLE, 4.2, 2, len(REFERENCES), sharex=True, sharey="row")
        for column, (reference, words) in enumerate(REFERENCES.items()):
            for rule, line in {"shared spread": "-", "plain t test": ":"}.items():
                rows = table[(table["reference"] == reference) & (table["rule"] == rule)]
                for name, (panel, label, tone, marker) in CURVES.items():
                    style = {"color": COLOURS[tone], "marker": marker, "markerfacecolor": "white"}
                    style |= {"linestyle": line, "label": label if line == "-" else None}
                    axes[panel, column].plot(rows["seeds"].astype(str), 100 * rows[name], **style)
            axes[0, column].set_title(words)
            dashed = {"color": INK, "linewidth": 0.8, "linestyle": "--"}
            axes[0, column].axhline(100 * ALPHA, label="limit, set before any run", **dashed)
            axes[1, column].set_xlabel("seeds of ours")
        axes[0, 0].set(ylabel="errors (%)", ylim=(0, 10))
        axes[1, 0].set(ylabel="power (%)", ylim=(0, 104))
        legend_below(figure, columns=3)
    alt = "Line charts of false drifts, false confirmations and power against two to ten seeds."
    caption = f"{tables:,} simulated tables of 30 numbers a point."
    return Drawing("Error rates and power of the verdict rule", caption, alt, figure, table)


def main(tables: int = 4000, claimed: int = 600, out: Path = OUT) -> int:
    """Simulate, write the page and the figure, and return the exit status.

    ``tables`` are drawn for the rule, half of them elsewhere, and ``claimed`` of each claim.
    """
    half, rule, claims = tables // 2, rule_table(tables), claim_table(claimed)
    named = rule.assign(reference=rule["reference"].map(REFERENCES))
    drifted, edge, seen = "any_drifted", "reproduced_at_margin", "drift_seen"
    standing = [f"{drifted}_standing", f"{edge}_standing"]
    rates = [drifted, f"{drifted}_varied", edge, seen, "confirmed"]
    twice = [f"{rate}_{end}" for rate in (seen, "confirmed") for end in ("first", "all")]
    ranks = ["wrong_pairs", "wrong_best", "false_claims"]
    text = TEMPLATE.read_text(encoding="utf-8").format(
        rule=rows_of(named, ["reference", "seeds"], rates),
        others=rows_of(frontier_table(half), ["rule", "seeds"], [drifted, seen]),
        worlds=rows_of(world_table(half), ["world"], [drifted, edge, *standing, seen]),
        looks=rows_of(sequence_table(half), ["looks", "reference"], [drifted, edge, *twice]),
        claims=rows_of(claims, ["scenario"], ["supported", "contradicted"]),
        budgets=rows_of(rank_worlds(half), ["world"], ranks),
        tables=f"{tables:,}",
        half=f"{half:,}",
        draws=f"{claimed:,}",
    )
    (out / "error_rates.md").write_text(text, encoding="utf-8")
    (out / "error_rates.svg").write_text(to_svg(draw_rates(rule, tables)))
    missed, over = len(missed_goals(rule)), len(beyond_limits(claims))
    print(f"beyond a goal by more than Monte Carlo error: {missed} of the rule, {over} of claims")
    return int(missed + over > 0)


if __name__ == "__main__":
    sys.exit(main())
