"""Draws the figures that a study asks for."""

from __future__ import annotations

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing
from benchmark.report.figures.papers.render import build_paper_figures
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.table import NothingToShow


def build_figures(inputs: Inputs) -> dict[str, Drawing | NothingToShow]:
    """Returns each figure of the study, or the reason why there is none, by name; last the papers' own figures."""
    found: dict[str, Drawing | NothingToShow] = {}
    wanted = FIGURES.names() if inputs.study.figures is None else inputs.study.figures
    for name in wanted:
        try:
            found[name] = FIGURES[name].target(inputs.runs, inputs.stats, inputs.study)
        except NothingToShow as reason:
            found[name] = reason
    found.update(build_paper_figures(inputs.printed, inputs.study, inputs.stats.get("claims")))
    return found
