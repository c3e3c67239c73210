"""Puts the page together: sections, inlined style, script and figures, and the files to download."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark import __version__
from benchmark.files import write_text
from benchmark.plots import FIGURES
from benchmark.plots.drawing import Drawing, inline_svg, to_svg
from benchmark.plots.papers.arrangement import paper_figures
from benchmark.plots.papers.render import title_of
from benchmark.plots.write import build_figures
from benchmark.report.answer import answer
from benchmark.report.glance import claim_counts, notices, run_counts, verdict_counts
from benchmark.report.methods import methods
from benchmark.report.origin import origin
from benchmark.tables import TABLES
from benchmark.tables.as_csv import to_csv
from benchmark.tables.as_html import to_html
from benchmark.tables.as_latex import to_latex
from benchmark.tables.inputs import Inputs, load_inputs
from benchmark.tables.papers.arrangement import arrangements
from benchmark.tables.table import NothingToShow, Table
from benchmark.tables.write import build_tables

PAPERS = "papers"  # stands for the papers' own tables and figures, whichever the study has
EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page
FOLDED = ("all_pairs", "best_epoch")  # tables for a second look start closed

LONG = 60  # rows from which the flat list of reference numbers starts closed as well

# (anchor, title, tables and figures in reading order); what is not named here comes in a section of its own.
SECTIONS = (
    ("claims", "Claims of the papers", ("table:claims",)),
    ("papers", "The papers' tables and figures", (PAPERS,)),
    ("verdicts", "Published numbers and verdicts", ("table:published", "figure:verdicts", "table:outside")),
    (
        "results",
        "Results",
        ("table:comparison", "figure:metric_by_batch_size", "figure:learning_curves", "table:best_epoch"),
    ),
    ("tests", "Tests", ("table:paired", "figure:seed_differences", "table:all_pairs")),
    ("ablation", "Ablation", ("table:ablation", "figure:calibration_gain")),
    ("cost", "Cost", ("table:cost", "figure:loss_cost")),
    ("missing", "Runs without a result", ("table:missing",)),
)


@dataclass
class Item:
    """One table or figure on the page; ``reason`` instead of ``body`` when there is nothing to show."""

    kind: str
    name: str
    title: str
    body: str = ""
    caption: str = ""
    reason: str = ""
    folded: bool = False
    paper: bool = False  # one of the papers' own tables and figures
    downloads: list[tuple[str, str, str]] = field(default_factory=list)  # (label, file name, address)


def write_report(study: Any, results: Path) -> Path:
    """Writes ``results/<study>/report/index.html`` from what is there and returns its path."""
    path = study.folder(Path(results)) / "report" / "index.html"
    write_text(path, build_page(load_inputs(study, results)))
    return path


def build_page(inputs: Inputs) -> str:
    """Returns the whole page; equal inputs give equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("benchmark.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    loader = environment.loader
    items = _items(inputs)
    for item in items.values():
        item.body = Markup(item.body)  # escaped where it was made
    return environment.get_template("page.html.j2").render(
        study=inputs.study,
        answer=answer(inputs),
        notices=notices(inputs),
        runs=run_counts(inputs),
        verdicts=verdict_counts(inputs),
        claims=claim_counts(inputs),
        stand_in=getattr(inputs.study, "stand_in", None),
        sections=_sections(items),
        origin=origin(inputs),
        methods=methods(inputs),
        version=__version__,
        style=Markup(loader.get_source(environment, "style.css")[0]),
        script=Markup(loader.get_source(environment, "sort.js")[0]),
    )


def _items(inputs: Inputs) -> dict[str, Item]:
    tables = {each.name for each in arrangements().values()}
    figures = {each.name for each in paper_figures()}
    items = {}
    for name, table in build_tables(inputs).items():
        items[f"table:{name}"] = _table(name, table, name in tables)
    for name, drawing in build_figures(inputs).items():
        items[f"figure:{name}"] = _figure(name, drawing, name in figures)
    return items


def _sections(items: dict[str, Item]) -> list[tuple[str, str, list[Item]]]:
    papers = [key for key, item in items.items() if item.paper]
    sections = [
        (anchor, title, papers if keys == (PAPERS,) else [key for key in keys if key in items])
        for anchor, title, keys in SECTIONS
    ]
    named = {key for _, _, keys in sections for key in keys}
    sections.append(("more", "More", [key for key in items if key not in named]))
    return [(anchor, title, [items[key] for key in keys]) for anchor, title, keys in sections if keys]


def _table(name: str, table: Table | NothingToShow, paper: bool) -> Item:
    if isinstance(table, NothingToShow):
        return Item("table", name, TABLES[name].display, reason=str(table))
    item = Item("table", name, table.title, to_html(table, name), paper=paper)
    item.folded = name in FOLDED or (name == "published" and table.rows > LONG) or (paper and not _measured(table))
    item.downloads = [
        _download("CSV", f"{name}.csv", to_csv(table), "text/csv", "tables"),
        _download("LaTeX", f"{name}.tex", to_latex(table, name), "text/plain", "tables"),
    ]
    return item


def _measured(table: Table) -> bool:
    """Returns whether any cell has a number of ours, which is the first of its numbers."""
    cells = (cell for section in table.sections for row in section.rows for cell in row)
    return any(cell.numbers and cell.numbers[0] is not None for cell in cells)


def _figure(name: str, drawing: Drawing | NothingToShow, paper: bool) -> Item:
    if isinstance(drawing, NothingToShow):
        title = title_of(name) if paper else FIGURES[name].display
        return Item("figure", name, title, reason=str(drawing), paper=paper)
    numbers = drawing.data.to_csv(index=False, float_format="%.8g", lineterminator="\n")
    body = inline_svg(to_svg(drawing), name, drawing.alt)
    item = Item("figure", name, drawing.title, body, drawing.caption, paper=paper)
    item.downloads = [
        _download("Numbers (CSV)", f"{name}.csv", numbers, "text/csv", "figures"),
    ]
    return item


def _download(label: str, file: str, text: str, kind: str, folder: str) -> tuple[str, str, str]:
    content = text.encode()
    if len(content) > EMBEDDED:
        return label, file, f"../{folder}/{file}"
    return label, file, f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"
