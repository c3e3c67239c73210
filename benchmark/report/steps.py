"""The steps ``tables`` and ``plots``: make what a study asks for, and leave a record of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.core.files import begin_folder, write_text
from benchmark.core.registry import Registry
from benchmark.report.drawing import Drawing, save
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.papers.figures import build_paper_figures
from benchmark.report.papers.tables import paper_tables, sweep_tables
from benchmark.report.records import Artefact, Group, write_artefacts
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown, to_page
from benchmark.report.table import NothingToShow, Table
from benchmark.report.tables import TABLES


def write_tables(inputs: Inputs, folder: Path) -> list[Artefact]:
    """Write the tables of a study into ``folder`` from scratch, and return their records.

    Each is written as CSV, Markdown, LaTeX and HTML; one without data leaves a Markdown file with
    the reason.
    """
    begin_folder(folder)
    made = [_write_table(*each, folder) for each in build_tables(inputs)]
    return write_artefacts(folder, made)


def write_figures(inputs: Inputs, folder: Path) -> list[Artefact]:
    """Write the figures of a study into ``folder`` from scratch, and return their records.

    Each is written as SVG and PDF, with a CSV of the numbers behind it.
    """
    begin_folder(folder)
    made = [_write_figure(*each, folder) for each in build_figures(inputs)]
    return write_artefacts(folder, made)


def build_tables(inputs: Inputs) -> Iterator[tuple[str, str, Group, Table | NothingToShow]]:
    """Yield (name, title, group, table or reason) of the tables of the study.

    Those of its own come first, then those that its papers print, then that of its sweeps.
    """
    yield from _registered(TABLES, inputs.study.tables, inputs)
    for name, table in paper_tables(inputs).items():
        yield name, table.title, "paper", table
    for name, table in sweep_tables(inputs).items():
        yield name, table.title, "sweep", table


def build_figures(inputs: Inputs) -> Iterator[tuple[str, str, Group, Drawing | NothingToShow]]:
    """Yield (name, title, group, drawing or reason) of the figures, as ``build_tables`` does."""
    yield from _registered(FIGURES, inputs.study.figures, inputs)
    yield from build_paper_figures(inputs)


def _registered(
    registry: Registry, wanted: tuple[str, ...] | None, inputs: Inputs
) -> Iterator[tuple[str, str, Group, Any]]:
    for name in registry.names() if wanted is None else wanted:
        entry = registry[name]
        if wanted is None and entry.facts["of_trials"] and not inputs.study.references.trials:
            continue
        try:
            made = entry.target(inputs)
        except NothingToShow as reason:
            made = reason
        yield name, entry.display, "study", made


def _write_table(
    name: str, title: str, group: Group, table: Table | NothingToShow, folder: Path
) -> Artefact:
    if isinstance(table, NothingToShow):
        write_text(folder / f"{name}.md", f"### {title}\n\n{table}\n")
        return Artefact(name, title, group, reason=str(table))
    texts = to_csv(table), to_markdown(table), to_latex(table, name), to_page(table, name)
    for kind, text in zip(("csv", "md", "tex", "html"), texts, strict=True):
        write_text(folder / f"{name}.{kind}", text)
    cells = (cell for section in table.sections for row in section.rows for cell in row)
    measured = any(cell.numbers and cell.numbers[0] is not None for cell in cells)
    html = to_html(table, name)
    return Artefact(name, table.title, group, rows=table.rows, html=html, measured=measured)


def _write_figure(
    name: str, title: str, group: Group, drawing: Drawing | NothingToShow, folder: Path
) -> Artefact:
    if isinstance(drawing, NothingToShow):
        return Artefact(name, title, group, reason=str(drawing))
    save(drawing, folder, name)
    rows, caption, alt = len(drawing.data), drawing.caption, drawing.alt
    return Artefact(name, drawing.title, group, rows=rows, caption=caption, alt=alt)
