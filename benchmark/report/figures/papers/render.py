"""The papers' figures of one study: which belong to it, and each drawn panel by panel."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmark.papers.arrangements import Figure, Panel
from benchmark.papers.library import cite, cite_statement
from benchmark.papers.printed.figures import PUBLISHED, FigureMarks, Mark, study_figures
from benchmark.papers.printed.study import Printed
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.papers.panels import DRAWERS, Drawn, published_key
from benchmark.report.figures.style import DOUBLE, FAINT, SINGLE, styled
from benchmark.report.tables.labels import confidence, loss_label, metric_label
from benchmark.report.tables.numbers import count
from benchmark.report.tables.table import NothingToShow
from benchmark.study import Study

Claims = Mapping[str, tuple[str, str]]
MARKS = ["panel", "series", "side", "x", "value", "low", "high", "n"]
TITLE = 30  # characters of a line above a panel
_WORDS = {
    "sweep": "test score at the last epoch, mean over seeds with its {confidence} t interval",
    "gain": "gain in percent of the score without the added term, mean over seeds with its {confidence} t interval",
    "convergence": "test score after each evaluated epoch, mean over seeds, band of one standard deviation",
    "effect": "difference in percentage points, paired by seed, mean with its {confidence} t interval",
}


def build_paper_figures(
    printed: Printed, study: Study, claims: pd.DataFrame | None = None
) -> dict[str, Drawing | NothingToShow]:
    """Return each paper's figure that belongs to the study, or why it cannot be drawn, by name.

    The sweeps on the embedded data are last. ``claims`` are the study's verdicts on papers' sentences.
    """
    marks, verdicts = {each.figure: each for each in printed.figures}, claims_here(claims)
    found: dict[str, Drawing | NothingToShow] = {}
    for figure in study_figures(study):
        if figure.name in marks:
            try:
                found[figure.name] = draw(figure, marks[figure.name], study, verdicts)
            except NothingToShow as reason:
                found[figure.name] = reason
    return found


def title_of(figure: Figure) -> str:
    """Return the title of a paper's figure: "ROADMAP, figure 4: ROADMAP's hyperparameters"."""
    if not figure.source:
        return figure.title
    place = cite(figure.source, figure.name.removeprefix(f"{figure.source}_"))
    return f"{place}: {figure.title}"


def claims_here(claims: pd.DataFrame | None) -> Claims:
    """Return {name of a claim: (where the paper says it, whether it holds here)}."""
    if claims is None or claims.empty:
        return {}
    here = claims[claims["reading"] == "here"].to_dict("records")
    return {
        str(row["claim"]): (
            cite_statement(str(row["paper"]), str(row["stated_in"])),
            str(row["verdict"]),
        )
        for row in here
    }


def draw(
    figure: Figure, marks: FigureMarks, study: Study, verdicts: Claims | None = None
) -> Drawing:
    """Return the figure; a panel without runs says so. Raise NothingToShow when that holds for all.

    ``verdicts`` are those of the claims that a panel names, which stand above it.
    """
    columns = min(3, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    handles: dict[str, Any] = {}
    with styled():
        width = DOUBLE if columns > 1 else SINGLE + 1.2
        drawing, grid = new_figure(width, 2.4 * rows + 0.6, rows, columns)
        for number, (axes, panel) in enumerate(zip(grid.flat, figure.panels, strict=False)):
            here = [mark for mark in marks.marks if mark.panel == number]
            DRAWERS[figure.kind](axes, Drawn(panel, here, study), handles)
            axes.set_title("\n".join([panel.title, *_judged(panel, verdicts or {})]), loc="left")
            if not any(mark.side == "ours" for mark in here):
                where = {"transform": axes.transAxes, "ha": "center", "va": "center"}
                axes.text(0.5, 0.5, "not run", color=FAINT, **where)
        for axes in grid.flat[len(figure.panels) :]:
            axes.remove()
        # last, and in no colour of its own, since it stands for every line
        if handles.pop(PUBLISHED, None) is not None:
            handles[PUBLISHED] = published_key()
        legend_below(drawing, handles, columns=4 if columns > 1 else 2)
    data = pd.DataFrame([_row(mark, figure, study) for mark in marks.marks], columns=MARKS)
    ours = data[data["side"] == "ours"]
    if ours.empty:
        raise NothingToShow(_reason(figure, marks.settings, study))
    title = title_of(figure)
    caption = _caption(figure, data, study)
    return Drawing(title, caption, _alt(title, ours, figure), drawing, data)


def _row(mark: Mark, figure: Figure, study: Study) -> dict[str, Any]:
    panel = figure.panels[mark.panel]
    series = Drawn(panel, [], study).series(mark)
    return {**vars(mark), "panel": panel.title, "series": series}


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


def _reason(figure: Figure, settings: int, study: Study) -> str:
    loss = loss_label(figure.panels[0].loss, study)
    names = [each.dataset for panel in figure.panels for each in panel.test_sets]
    where = ", ".join(dict.fromkeys(names))
    if settings < 2:
        return f"the study asks for no runs of {loss} that vary what this figure shows on {where}"
    needed = count(settings, "setting")
    return f"no run of {loss} on {where} has finished yet, of {needed} that the figure needs"


def _caption(figure: Figure, data: pd.DataFrame, study: Study) -> str:
    words = _WORDS[figure.kind].format(confidence=confidence(study))
    text = f"{words[0].upper()}{words[1:]}."
    if (data["side"] == PUBLISHED).any():
        text += " Open marks and dotted lines are published values."
    if any(panel.claims for panel in figure.panels):
        text += (
            " Above each panel: where papers say something about it, and whether that holds here."
        )
    facts = {(panel.backbone, panel.batch_size) for panel in figure.panels}
    if study.stand_in:
        stand_in = f"stand-in data ({study.stand_in}) with a small network"
        return f"{text} Measured on {stand_in}: no reproduction."
    if len(facts) == 1:
        backbone, size = facts.pop()
        text += f" Backbone {backbone}" + (f", batch size {size}." if size else ".")
    return text


def _alt(title: str, ours: pd.DataFrame, figure: Figure) -> str:
    metric = metric_label(figure.panels[0].metric)
    listed = "; ".join(
        f"{series} in panel '{panel}' from {part['value'].min():.1f} to {part['value'].max():.1f}"
        for (panel, series), part in list(ours.groupby(["panel", "series"], sort=False))[:6]
    )
    return f"{title}. {metric}: {listed}."
