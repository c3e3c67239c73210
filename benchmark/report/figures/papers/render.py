"""The papers' figures of one study: which belong to it, and each drawn panel by panel."""

from __future__ import annotations

import textwrap
from typing import Any

import pandas as pd

from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.papers.arrangement import (
    OPTION,
    Panel,
    PaperFigure,
    on_stand_in,
    paper_figures,
    sweep_figures,
)
from benchmark.report.figures.papers.panels import DRAWERS, PUBLISHED, published_key
from benchmark.report.figures.papers.points import MARKS, Points, x_of
from benchmark.report.figures.style import DOUBLE, FAINT, SINGLE, styled
from benchmark.report.tables.labels import confidence, loss_label, metric_label
from benchmark.report.tables.numbers import count
from benchmark.report.tables.papers.arrangement import place, place_in_short
from benchmark.report.tables.table import NothingToShow
from benchmark.study.stand_in import JOINT

Claims = dict[str, tuple[str, str]]
TITLE = 30  # characters of a line above a panel
_WORDS = {
    "sweep": "test score at the last epoch, mean over seeds with its {confidence} t interval",
    "gain": "gain in percent of the score without the added term, mean over seeds with its {confidence} t interval",
    "convergence": "test score after each evaluated epoch, mean over seeds, band of one standard deviation",
    "effect": "difference in percentage points, paired by seed, mean with its {confidence} t interval",
}


def build_paper_figures(
    runs: pd.DataFrame, study: Any, claims: pd.DataFrame | None = None
) -> dict[str, Drawing | NothingToShow]:
    """Returns each paper's figure that belongs to the study, or the reason why it cannot be drawn, by name; last the
    sweeps on the embedded data. ``claims`` are the study's verdicts on the papers' sentences."""
    points = Points(runs, study)
    verdicts = claims_here(claims)
    found: dict[str, Drawing | NothingToShow] = {}
    for figure in (*paper_figures(), *sweep_figures()):
        figure = on_stand_in(figure, points.stand_in) if points.stand_in else figure
        belongs = study.name.partition(JOINT)[0] in figure.studies
        may = figure.printed and not points.stand_in
        if belongs or (may and any(_asked(figure, panel, points) > 1 for panel in figure.panels)):
            try:
                found[figure.name] = draw(figure, points, verdicts)
            except NothingToShow as reason:
                found[figure.name] = reason
    return found


def title_of(name: str) -> str:
    """Returns the title of a paper's figure: "ROADMAP, figure 4: ROADMAP's hyperparameters"."""
    figure = next(each for each in (*paper_figures(), *sweep_figures()) if each.name == name)
    return (
        f"{place(figure.paper, figure.figure)}: {figure.title}" if figure.printed else figure.title
    )


def claims_here(claims: pd.DataFrame | None) -> Claims:
    """Returns {name of a claim: (where the paper says it, whether it holds here)}."""
    if claims is None or claims.empty:
        return {}
    here = claims[claims["reading"] == "here"].to_dict("records")
    return {
        str(row["claim"]): (
            place_in_short(str(row["paper"]), str(row["place"])),
            str(row["verdict"]),
        )
        for row in here
    }


def draw(figure: PaperFigure, points: Points, verdicts: Claims | None = None) -> Drawing:
    """Returns the figure; a panel without runs says so. Raises NothingToShow when that holds for all.

    ``verdicts`` are those of the claims that a panel names (``claims_here``), which stand above it.
    """
    columns = min(3, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    handles: dict[str, Any] = {}
    marks: list[dict] = []
    with styled():
        width = DOUBLE if columns > 1 else SINGLE + 1.2
        drawn, grid = new_figure(width, 2.4 * rows + 0.6, rows, columns)
        for axes, panel in zip(grid.flat, figure.panels, strict=False):
            found = DRAWERS[figure.kind](axes, panel, points, figure.paper, handles)
            axes.set_title("\n".join([panel.title, *_judged(panel, verdicts or {})]), loc="left")
            if not any(mark["side"] == "ours" for mark in found):
                axes.text(
                    0.5,
                    0.5,
                    "not run",
                    transform=axes.transAxes,
                    ha="center",
                    va="center",
                    color=FAINT,
                )
            marks += found
        for axes in grid.flat[len(figure.panels) :]:
            axes.remove()
        if (
            PUBLISHED in handles
        ):  # last, and in no colour of its own, since it stands for every series
            del handles[PUBLISHED]
            handles[PUBLISHED] = published_key()
        legend_below(drawn, handles, columns=4 if columns > 1 else 2)
    data = pd.DataFrame(marks).reindex(columns=MARKS)
    ours = data[data["side"] == "ours"]
    if ours.empty:
        raise NothingToShow(_reason(figure, points))
    title = title_of(figure.name)
    return Drawing(title, _caption(figure, points, data), _alt(title, ours, figure), drawn, data)


def _asked(figure: PaperFigure, panel: Panel, points: Points) -> int:
    """Returns how many different places on the x axis the study's grid has runs for."""
    free = {
        "any_size": panel.x in ("", "batch_size"),
        "any_option": figure.kind == "effect" or panel.x == OPTION,
    }
    cells = [
        cell for each in panel.series for cell in points.cells(panel, each, panel.loss, **free)
    ]
    if figure.kind == "sweep":
        read = x_of(panel)
        return len({read(cell) for cell in cells} - {None})
    if figure.kind == "effect":
        return len({str(cell.variant.params.get(panel.parameter)) for cell in cells})
    return len({cell.batch_size for cell in cells})


def _judged(panel: Panel, verdicts: Claims) -> list[str]:
    """Returns the lines above a panel: where a paper says something about it, and whether that holds here.

    Several claims of one place share a line: "ROADMAP, figure 4b: 1 supported, 1 inconclusive".
    """
    found: dict[str, list[str]] = {}
    for name in panel.claims:
        if name in verdicts:
            where, verdict = verdicts[name]
            found.setdefault(where, []).append(verdict)
    lines = []
    for where, words in found.items():
        counted = [
            (word.replace("_", " "), words.count(word)) for word in CLAIM_VERDICTS if word in words
        ]
        text = ", ".join(f"{number} {word}" if len(words) > 1 else word for word, number in counted)
        lines += textwrap.wrap(f"{where}: {text}", TITLE)
    return lines


def _reason(figure: PaperFigure, points: Points) -> str:
    asked = max(_asked(figure, panel, points) for panel in figure.panels)
    loss = loss_label(figure.panels[0].loss, points.study)
    where = ", ".join(
        dict.fromkeys(each.dataset for panel in figure.panels for each in panel.series)
    )
    if asked < 2:
        return f"the study asks for no runs of {loss} that vary what this figure shows on {where}"
    return f"no run of {loss} on {where} has finished yet, of {count(asked, 'setting')} that the figure needs"


def _caption(figure: PaperFigure, points: Points, data: pd.DataFrame) -> str:
    words = _WORDS[figure.kind].format(confidence=confidence(points.study))
    text = f"{words[0].upper()}{words[1:]}."
    if (data["side"] == PUBLISHED).any():
        text += " Open marks and dotted lines are published values."
    if any(panel.claims for panel in figure.panels):
        text += (
            " Above each panel: where papers say something about it, and whether that holds here."
        )
    facts = {(panel.backbone, panel.batch_size) for panel in figure.panels}
    if points.stand_in:
        return f"{text} Measured on stand-in data ({points.stand_in}) with a small network: no reproduction."
    if len(facts) == 1:
        backbone, size = facts.pop()
        text += f" Backbone {backbone}" + (f", batch size {size}." if size else ".")
    return text


def _alt(title: str, ours: pd.DataFrame, figure: PaperFigure) -> str:
    metric = metric_label(figure.panels[0].metric)
    listed = "; ".join(
        f"{series} in panel '{panel}' from {part['value'].min():.1f} to {part['value'].max():.1f}"
        for (panel, series), part in list(ours.groupby(["panel", "series"], sort=False))[:6]
    )
    return f"{title}. {metric}: {listed}."
