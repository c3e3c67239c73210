"""Write ``docs/background/error_rates.md`` and its figure: ``make error-rates``.

Exit status 1 when a goal that was set before any simulation is missed by more than Monte Carlo
error.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from error_rates.budgets import rank_worlds
from error_rates.claims import RATES, beyond_limits, claim_table
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
    alt = "Line charts of false drifts, false confirmations and power against two to ten seeds."
    caption = f"{tables:,} simulated tables of 30 numbers a point."
    return Drawing("Error rates and power of the verdict rule", caption, alt, figure, table)


def main(arguments: Iterable[str] | None = None) -> int:
    """Simulate, write the page and the figure, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", type=int, default=4000, help="of the rule; half of it elsewhere"
    )
    parser.add_argument("--claims", type=int, default=600, help="simulated claims per scenario")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to")
    asked = parser.parse_args(arguments if arguments is None else list(arguments))
    half, seed = asked.tables // 2, asked.seed
    rule, claims = rule_table(asked.tables, seed), claim_table(asked.claims, seed)
    worlds, looks = world_table(half, seed), sequence_table(half, seed)
    other, planted = frontier_table(half, seed), rank_worlds(half, seed)
    named = rule.assign(reference=rule["reference"].map(REFERENCES))
    errors, power = ["any_drifted", "any_drifted_varied", "reproduced_at_margin"], "drift_seen"
    ranks = ["wrong_pairs", "wrong_best", "false_claims"]
    found = {
        "rule": rows_of(named, ["reference", "seeds"], [*errors, power, "confirmed"]),
        "others": rows_of(other, ["rule", "seeds"], ["any_drifted", power]),
        "worlds": rows_of(worlds, ["world"], [*worlds.columns[2:]]),
        "looks": rows_of(looks, ["looks", "reference"], [*looks.columns[2:]]),
        "claims": rows_of(claims, ["scenario"], [*RATES]),
        "budgets": rows_of(planted, ["world"], ranks),
        "tables": f"{asked.tables:,}",
        "half": f"{half:,}",
        "draws": f"{asked.claims:,}",
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, words in found.items():
        text = text.replace(f"{{{name}}}", words)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "error_rates.md").write_text(text, encoding="utf-8")
    (asked.out / "error_rates.svg").write_text(to_svg(draw_rates(rule, asked.tables)))
    missed, over = len(missed_goals(rule)), len(beyond_limits(claims))
    print(
        f"{missed} rows of the rule and {over} of claims miss a goal by more than Monte Carlo error"
    )
    return int(missed + over > 0)


if __name__ == "__main__":
    sys.exit(main())
