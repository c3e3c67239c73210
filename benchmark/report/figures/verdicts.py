"""All measured references in one figure: difference and interval against the margin."""

from typing import Any

from benchmark.papers.paper import cite
from benchmark.papers.verdicts import rule
from benchmark.report.drawing import (
    BAND,
    COLOURS,
    DOUBLE,
    INK,
    Drawing,
    legend_below,
    new_figure,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import dataset_label, loss_label, metric_label
from benchmark.report.numbers import count, listed, words_of
from benchmark.report.panels import left_out, rows_of
from benchmark.report.table import TONES, NothingToShow
from benchmark.study import Study

TITLE = "Differences to the references"
ROWS = 60  # that fit on one page
_MARKERS = {"drifted": "s", "inconclusive": "D", "reproduced": "o"}  # in the order of the rows


@FIGURES.register("verdicts", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return one row per judged reference number, drifted ones first; the band is the margin."""
    verdicts = inputs.some("verdicts")
    judged = verdicts[verdicts["difference"].notna() & verdicts["verdict"].isin([*_MARKERS])]
    if judged.empty:
        words = listed([words_of(word) for word in sorted(set(verdicts["verdict"]))])
        raise NothingToShow(
            f"none of {count(len(verdicts), 'reference number')} was measured (all are {words})"
        )
    judged = judged.sort_values(
        "verdict", key=lambda words: words.map([*_MARKERS].index), kind="stable", ignore_index=True
    )
    drawn = judged.head(ROWS)
    margins, rows = drawn["margin"].fillna(0), range(len(drawn))
    with styled():
        figure, grid = new_figure(DOUBLE, 0.9 + 0.17 * len(drawn))
        axes = grid[0, 0]
        band = {"height": 1, "color": BAND, "alpha": 0.22, "linewidth": 0, "zorder": 0}
        axes.barh(rows, 2 * margins, left=-margins, **band)
        axes.axvline(0, color=INK, linewidth=0.7)
        for word, marker in _MARKERS.items():
            part = rows_of(drawn, verdict=word)
            bars = [part["difference"] - part["ci_low"], part["ci_high"] - part["difference"]]
            colour = COLOURS[TONES[word]]
            if len(part):
                axes.errorbar(
                    part["difference"],
                    part.index,
                    xerr=[side.fillna(0) for side in bars],
                    fmt=marker,
                    color=colour,
                    markerfacecolor="white" if word == "inconclusive" else colour,
                    label=word,
                )
        named = {
            column: drawn[[column, "source"]].drop_duplicates().shape[0] > 1
            for column in ("dataset", "table")
        }
        axes.set_yticks(rows, [_label(row, named, inputs.study) for row in drawn.itertuples()])
        axes.set_ylim(len(drawn) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("ours − reference (percentage points)")
        legend_below(figure)
    counts = verdicts["verdict"].value_counts()
    told = ", ".join(f"{number} {words_of(str(word))}" for word, number in counts.items())
    caption = (
        "Difference to each reference number with its interval; the grey band is the margin. The "
        f"rule is {rule(verdicts['level'].min())}. References that were not run are not "
        f"drawn.{left_out(judged, ROWS, 'rows')}"
    )
    alt = f"Interval plot of {len(drawn)} differences to reference numbers: {told}."
    return Drawing(TITLE, caption, alt, figure, judged)


def _label(row: Any, named: dict[str, bool], study: Study) -> str:
    """Return a row's name; dataset and table are ``named`` only where the figure has several."""
    parts = [loss_label(row.loss, study)]
    if row.batch_size == row.batch_size:
        parts.append(f"bs {row.batch_size:.0f}")
    parts.append(metric_label(row.metric))
    if named["dataset"]:
        parts.append(dataset_label(row.dataset, split=row.split))
    if named["table"]:
        frozen = row.source == row.table
        parts.append(row.source if frozen else cite(row.source, row.table))
    return " · ".join(parts)
