"""Draws the figures that a study asks for and writes each as SVG, PDF and the CSV of its numbers."""

from __future__ import annotations

from pathlib import Path

from benchmark.plots import FIGURES
from benchmark.plots.drawing import Drawing, save
from benchmark.plots.papers.render import build_paper_figures
from benchmark.tables.inputs import Inputs
from benchmark.tables.table import NothingToShow


def build_figures(inputs: Inputs) -> dict[str, Drawing | NothingToShow]:
    """Returns each figure of the study, or the reason why there is none, by name; last the papers' own figures."""
    found: dict[str, Drawing | NothingToShow] = {}
    wanted = FIGURES.names() if inputs.study.figures is None else inputs.study.figures
    for name in wanted:
        try:
            found[name] = FIGURES[name].target(inputs.runs, inputs.stats, inputs.study)
        except NothingToShow as reason:
            found[name] = reason
    found.update(build_paper_figures(inputs.runs, inputs.study, inputs.stats.get("claims")))
    return found


def write_figures(inputs: Inputs, folder: Path) -> dict[str, str]:
    """Writes the figures below ``folder`` and returns {name: what was written, or why not}.

    A figure without data takes away the files of an earlier state, so that no stale figure is shown.
    """
    report = {}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, drawing in build_figures(inputs).items():
        if isinstance(drawing, NothingToShow):
            for kind in ("svg", "pdf", "csv"):
                (Path(folder) / f"{name}.{kind}").unlink(missing_ok=True)
            report[name] = f"nothing to show: {drawing}"
        else:
            save(drawing, Path(folder), name)
            report[name] = f"{len(drawing.data)} numbers"
    return report
