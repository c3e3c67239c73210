"""All measured references at a glance: difference and 90% interval against the margin."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.library import cite
from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.style import BAND, DOUBLE, INK, TONES, styled
from benchmark.report.tables.labels import loss_label, metric_label
from benchmark.report.tables.numbers import count
from benchmark.report.tables.published import VERDICT_TONES
from benchmark.report.tables.table import NothingToShow

ROWS = 60  # that fit on one page
_MARKERS = {"reproduced": "o", "drifted": "s", "inconclusive": "D"}


@FIGURES.register("verdicts", display="Differences to the references")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns one row per judged reference number, drifted ones first; the band is the margin."""
    verdicts = stats.get("verdicts", pd.DataFrame())
    if verdicts.empty:
        raise NothingToShow(
            "there are no verdicts: the study names no references, or none have been judged yet"
        )
    judged = verdicts[verdicts["difference"].notna() & (verdicts["verdict"] != "not_run")]
    if judged.empty:
        raise NothingToShow(
            f"none of {count(len(verdicts), 'reference number')} was measured (all are not run)"
        )
    order = {"drifted": 0, "inconclusive": 1, "reproduced": 2}
    judged = judged.assign(_order=judged["verdict"].map(order)).sort_values("_order", kind="stable")
    judged = judged.drop(columns="_order").reset_index(drop=True)
    shown = judged.head(ROWS)
    handles: dict[str, Any] = {}
    with styled():
        figure, grid = new_figure(DOUBLE, 0.9 + 0.17 * len(shown))
        axes = grid[0, 0]
        margins = shown["margin"].fillna(0)
        rows = range(len(shown))
        axes.barh(
            rows,
            2 * margins,
            left=-margins,
            height=1,
            color=BAND,
            alpha=0.22,
            linewidth=0,
            zorder=0,
        )
        axes.axvline(0, color=INK, linewidth=0.7)
        for word, marker in _MARKERS.items():
            part = shown[shown["verdict"] == word]
            if part.empty:
                continue
            bars = [part["difference"] - part["ci90_low"], part["ci90_high"] - part["difference"]]
            handles[word] = axes.errorbar(
                part["difference"],
                part.index,
                xerr=[side.fillna(0) for side in bars],
                fmt=marker,
                color=TONES[VERDICT_TONES[word]],
                markerfacecolor="white" if word == "inconclusive" else TONES[VERDICT_TONES[word]],
            )
        named = [
            column
            for column in ("dataset", "table")
            if shown[[column, "source"]].drop_duplicates().shape[0] > 1
        ]
        axes.set_yticks(rows, [_label(row, named, study) for row in shown.to_dict("records")])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("ours − reference (percentage points)")
        legend_below(figure, handles)
    counts = verdicts["verdict"].value_counts()
    listed = ", ".join(
        f"{counts[word]} {word.replace('_', ' ')}" for word in VERDICT_TONES if word in counts
    )
    caption = (
        "Difference to each reference number with its 90% interval; the grey band is the margin. Inside the band: "
        "reproduced; significantly outside: drifted; else inconclusive. References that were not run are not drawn."
    )
    if len(judged) > len(shown):
        caption += f" {len(judged) - len(shown)} further rows are only in the CSV file."
    alt = f"Interval plot of {len(shown)} differences to reference numbers: {listed}."
    return Drawing("Differences to the references", caption, alt, figure, judged)


def _label(row: dict[str, Any], named: list[str], study: Any) -> str:
    """Returns a row's name; dataset and table are ``named`` only where the figure has several."""
    parts = [loss_label(str(row["loss"]), study), metric_label(str(row["metric"]))]
    if pd.notna(row["batch_size"]):
        parts.insert(1, f"bs {row['batch_size']:.0f}")
    if "dataset" in named:
        parts.append(
            str(row["dataset"]) if row["split"] == "test" else f"{row['dataset']} {row['split']}"
        )
    if "table" in named:
        parts.append(
            str(row["source"])
            if row["source"] == row["table"]
            else cite(row["source"], row["table"])
        )
    return " · ".join(parts)
