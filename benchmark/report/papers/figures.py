"""The papers' figures of one study: which belong to it, and each drawn panel by panel."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from benchmark.papers.arrangements import Figure, Panel
from benchmark.papers.library import all_figures, cite, cite_statement
from benchmark.papers.printed.figures import OURS, PUBLISHED, FigureMarks, Mark
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS
from benchmark.report.drawing import (
    DOUBLE,
    FAINT,
    SINGLE,
    Drawing,
    legend_below,
    new_figure,
    styled,
)
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import confidence, loss_label, metric_label
from benchmark.report.numbers import count, words_of
from benchmark.report.papers.panels import DRAWERS, Drawn, published_key
from benchmark.report.records import Group
from benchmark.report.table import NothingToShow
from benchmark.study import Study

Claims = Mapping[str, tuple[str, str]]
MARKS = ["panel", "series", "side", "x", "value", "low", "high", "n"]
TITLE = 30  # characters of a line above a panel
_WORDS = {
    "sweep": "test score at the last epoch, {mean}",
    "gain": "gain in percent of the score without the added term, {mean}",
    "convergence": "test score after each evaluated epoch, mean over seeds, "
    "band of one standard deviation",
    "effect": "difference in percentage points, paired by seed, {mean}",
}


def build_paper_figures(
    inputs: Inputs,
) -> Iterator[tuple[str, str, Group, Drawing | NothingToShow]]:
    """Yield (name, title, group, drawing or reason) of the papers' figures that the study has.

    Last come its sweeps on the embedded data.
    """
    study, verdicts = inputs.study, claims_here(inputs.claims)
    marks = {each.figure: each for each in inputs.printed.figures}
    for figure in all_figures():
        if figure.name in marks:
            group: Group = "paper" if figure.source else "sweep"
            drawing: Drawing | NothingToShow
            try:
                drawing = draw(figure, marks[figure.name], study, verdicts)
            except NothingToShow as reason:
                drawing = reason
            yield figure.name, title_of(figure), group, drawing


def title_of(figure: Figure) -> str:
    """Return the title of a paper's figure: "ROADMAP, figure 4: ROADMAP's hyperparameters"."""
    if not figure.source:
        return figure.title
    place = cite(figure.source, figure.name.removeprefix(f"{figure.source}_"))
    return f"{place}: {figure.title}"


def claims_here(claims: pd.DataFrame) -> Claims:
    """Return {name of a claim: (where the paper says it, whether it holds here)}."""
    return {
        row.claim: (cite_statement(row.paper, row.stated_in), row.verdict)
        for row in records(claims)
        if row.reading == "here"
    }


def draw(figure: Figure, marks: FigureMarks, study: Study, verdicts: Claims) -> Drawing:
    """Return the figure; a panel without runs says so. Raise NothingToShow when that holds for all.

    ``verdicts`` are those of the claims that a panel names, which stand above it.
    """
    if not any(mark.side == OURS for mark in marks.marks):
        raise NothingToShow(_reason(figure, marks.settings, study))
    columns = min(3, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with styled():
        width = DOUBLE if columns > 1 else SINGLE + 1.2
        drawing, grid = new_figure(width, 2.4 * rows + 0.6, rows, columns)
        for number, (axes, panel) in enumerate(zip(grid.flat, figure.panels, strict=False)):
            here = [mark for mark in marks.marks if mark.panel == number]
            DRAWERS[figure.kind](axes, Drawn(panel, here, study))
            axes.set_title("\n".join([panel.title, *_judged(panel, verdicts)]), loc="left")
            if not any(mark.side == OURS for mark in here):
                where = {"transform": axes.transAxes, "ha": "center", "va": "center"}
                axes.text(0.5, 0.5, "not run", color=FAINT, **where)
        for axes in grid.flat[len(figure.panels) :]:
            axes.remove()
        # Published values end the legend in no colour of their own: they stand beside every series.
        legend_below(drawing, columns=4 if columns > 1 else 2, last=(PUBLISHED, published_key()))
    data = pd.DataFrame([_row(mark, figure, study) for mark in marks.marks], columns=MARKS)
    title, ours = title_of(figure), data[data["side"] == OURS]
    alt = _alt(title, ours, figure)
    return Drawing(title, _caption(figure, data, study), alt, drawing, data)


def _row(mark: Mark, figure: Figure, study: Study) -> dict[str, Any]:
    panel = figure.panels[mark.panel]
    series = Drawn(panel, [], study).series(mark)
    return {**vars(mark), "panel": panel.title, "series": series}


def _judged(panel: Panel, verdicts: Claims) -> list[str]:
    """Return the lines above a panel: where papers claim something of it, and whether it holds.

    Several claims of one place share a line: "ROADMAP, figure 4b: 1 supported, 1 inconclusive".
    """
    found: dict[str, list[str]] = {}
    for name in panel.claims:
        if name in verdicts:
            where, verdict = verdicts[name]
            found.setdefault(where, []).append(verdict)
    lines = []
    for where, words in found.items():
        counted = [(words_of(word), words.count(word)) for word in CLAIM_VERDICTS if word in words]
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
    mean = f"mean over seeds with its {confidence(study)} t interval"
    words = _WORDS[figure.kind].format(mean=mean)
    text = f"{words[0].upper()}{words[1:]}."
    if (data["side"] == PUBLISHED).any():
        text += " Open marks and dotted lines are published values."
    if any(panel.claims for panel in figure.panels):
        text += (
            " Above each panel: where papers say something about it, and whether that holds here."
        )
    facts = {(panel.backbone, panel.batch_size) for panel in figure.panels}
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
