"""The steps ``tables`` and ``plots``: make what a study asks for, and leave a record of each."""

import re
import reprlib
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from benchmark.core.files import begin_folder, write_text
from benchmark.core.plugin_errors import file_of, in_words, line_in
from benchmark.core.privacy import without_paths
from benchmark.core.registry import Registry
from benchmark.report.drawing.drawing import Drawing, save
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.papers.figures import build_paper_figures
from benchmark.report.papers.sweeps import sweep_tables
from benchmark.report.papers.tables import paper_tables
from benchmark.report.records import CONTENTS, Artefact, Group, write_artefacts
from benchmark.report.render.csv import to_csv
from benchmark.report.render.html import to_html, to_page
from benchmark.report.render.latex import to_latex
from benchmark.report.render.markdown import to_markdown
from benchmark.report.render.table import NothingToShow, Table
from benchmark.report.tables import TABLES

# Characters of texts from outside that would steer a terminal, or end a line of LaTeX.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write_tables(inputs: Inputs, folder: Path) -> list[Artefact]:
    """Write the tables of a study into ``folder`` from scratch, and return their records.

    Each is written as CSV, Markdown, LaTeX and HTML; one without data leaves a Markdown file with
    the reason.
    """
    begin_folder(folder, CONTENTS)
    made = [_made(_write_table, TABLES, each, folder) for each in build_tables(inputs)]
    return write_artefacts(folder, made)


def write_figures(inputs: Inputs, folder: Path) -> list[Artefact]:
    """Write the figures of a study into ``folder`` from scratch, and return their records.

    Each is written as SVG and PDF, with a CSV of the numbers behind it.
    """
    begin_folder(folder, CONTENTS)
    made = [_made(_write_figure, FIGURES, each, folder) for each in build_figures(inputs)]
    return write_artefacts(folder, made)


def build_tables(inputs: Inputs) -> Iterator[tuple[str, str, Group, Table | NothingToShow]]:
    """Yield (name, title, group, table or reason) of the tables of the study.

    Those of its own come first, then those that its papers print, then that of its sweeps.
    """
    yield from _registered(TABLES, Table, inputs.study.tables, inputs)
    for name, table in paper_tables(inputs).items():
        yield name, table.title, "paper", table
    for name, table in sweep_tables(inputs).items():
        yield name, table.title, "sweep", table


def build_figures(inputs: Inputs) -> Iterator[tuple[str, str, Group, Drawing | NothingToShow]]:
    """Yield (name, title, group, drawing or reason) of the figures, as ``build_tables`` does."""
    yield from _registered(FIGURES, Drawing, inputs.study.figures, inputs)
    yield from build_paper_figures(inputs)


def _registered(
    registry: Registry, kind: type, wanted: tuple[str, ...] | None, inputs: Inputs
) -> Iterator[tuple[str, str, Group, Any]]:
    for name in registry.names() if wanted is None else wanted:
        entry = registry[name]
        if wanted is None and entry.facts["of_trials"] and not inputs.study.references.trials:
            continue
        build = entry.target if file_of(entry.target) is None else partial(_apart, entry.target)
        try:
            made = build(inputs)
            if not isinstance(made, kind):
                raise TypeError(f"it returned {reprlib.repr(made)}; return a {kind.__name__}")
        except NothingToShow as reason:
            made = reason
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            made = _reason(registry, name, error)
        yield name, entry.display, "study", made


def _apart(build: Callable[[Inputs], Any], inputs: Inputs) -> Any:
    """Return what a plugin builds; it may change its tables, the style and the folder."""
    with rc_context(), chdir("."):
        return build(inputs.copied())


def _made(
    write: Callable[..., Artefact], registry: Registry, built: tuple[Any, ...], folder: Path
) -> Artefact:
    """Return the record of a table or figure once it is written, or why it cannot be."""
    name, title, group, _ = built
    try:
        return write(*built, folder)
    except Exception as error:
        if group != "study":
            raise
        return write(name, title, group, _reason(registry, name, error), folder)


def _reason(registry: Registry, name: str, error: BaseException) -> NothingToShow:
    """Return why a plugin's table or figure is not shown: the others are; raise any other error."""
    target = registry[name].target
    file = file_of(target)
    if file is None:
        raise error
    words = f"{registry.words_of(target)}{line_in(file, error)}: {in_words(error)}"
    print(f"warning: {words}", file=sys.stderr)
    return NothingToShow(without_paths(words))


def _write_table(
    name: str, title: str, group: Group, table: Table | NothingToShow, folder: Path
) -> Artefact:
    if isinstance(table, NothingToShow):
        write_text(folder / f"{name}.md", f"### {title}\n\n{table}\n")
        return Artefact(name, title, group, reason=str(table))
    texts = to_csv(table), to_markdown(table), to_latex(table, name), to_page(table, name)
    for kind, text in zip(("csv", "md", "tex", "html"), texts, strict=True):
        write_text(folder / f"{name}.{kind}", _CONTROL.sub("\ufffd", text))
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
