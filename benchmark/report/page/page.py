"""Puts the page together: sections, inlined style, script and figures, and the files to download."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark import __version__
from benchmark.core.files import write_text
from benchmark.papers.library import all_figures, arranged_tables
from benchmark.papers.verdicts.vocabulary import NOT_RUN
from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import inline_svg
from benchmark.report.figures.kept import Shown, shown_figures
from benchmark.report.figures.papers.render import title_of
from benchmark.report.page.analyses import ShownAnalysis, load_analyses
from benchmark.report.page.answer import answer
from benchmark.report.page.gallery import load_gallery
from benchmark.report.page.glance import (
    claim_counts,
    claims_words,
    notices,
    run_counts,
    verdict_counts,
)
from benchmark.report.page.methods import methods
from benchmark.report.page.origin import origin
from benchmark.report.page.sources import recipe_sources
from benchmark.report.tables import TABLES
from benchmark.report.tables.as_csv import to_csv
from benchmark.report.tables.as_html import to_html
from benchmark.report.tables.as_latex import to_latex
from benchmark.report.tables.inputs import Inputs, load_inputs
from benchmark.report.tables.table import NothingToShow, Table
from benchmark.report.tables.write import build_tables

# Stand for whatever the study has of: the papers' own tables and figures, sweeps, the gallery, analyses.
PAPERS, SWEEPS, GALLERY, ANALYSES = "papers", "sweeps", "gallery", "analyses"
EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page
FOLDED = ("all_pairs", "best_epoch")  # tables for a second look start closed

LONG = 60  # rows from which the flat list of reference numbers starts closed as well

# What papers say comes first where there is something to compare with it, else after the study's own results.
OF_PAPERS = ("claims", "verdicts")

# (anchor, title, tables and figures in reading order); what is not named here comes in a section of its own.
SECTIONS = (
    ("claims", "Claims of the papers", ("table:claims",)),
    (
        "verdicts",
        "Published numbers and verdicts",
        ("figure:verdicts", "table:published", "table:outside"),
    ),
    ("papers", "The papers' tables and figures", (PAPERS,)),
    ("sweeps", "Sweeps", (SWEEPS, "table:sweeps")),
    ("results", "Results", ("table:comparison", "figure:metric_by_batch_size", "table:best_epoch")),
    ("tests", "Tests", ("table:paired", "figure:seed_differences", "table:all_pairs")),
    ("ablation", "Ablation", ("table:ablation", "figure:calibration_gain")),
    ("gallery", "Retrieval gallery", (GALLERY,)),
    ("curves", "Learning curves", ("figure:learning_curves",)),
    ("analyses", "Analyses", (ANALYSES,)),
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
    sweep: bool = False  # a sweep of hyperparameters
    downloads: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # (label, file name, address)


def write_report(study: Any, results: Path) -> Path:
    """Writes ``results/<study>/report/index.html`` from what is there and returns its path."""
    folder = study.folder(Path(results))
    path = folder / "report" / "index.html"
    write_text(path, build_page(load_inputs(study, results), folder))
    return path


def build_page(inputs: Inputs, folder: Path | None = None) -> str:
    """Returns the whole page; equal inputs give equal bytes.

    ``folder`` is the study's results folder: the gallery and the analyses in it become part of the page.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("benchmark.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    loader = environment.loader
    items = _items(inputs, folder)
    for item in items.values():
        item.body = Markup(item.body)  # escaped where it was made
    gallery = load_gallery(folder / GALLERY) if folder else None
    analyses = load_analyses(folder / ANALYSES) if folder else []
    sources = recipe_sources(inputs.study)
    return environment.get_template("page.html.j2").render(
        study=inputs.study,
        answer=answer(inputs),
        notices=notices(inputs),
        runs=run_counts(inputs),
        verdicts=verdict_counts(inputs),
        claims=claim_counts(inputs),
        claims_words=claims_words(inputs),
        stand_in=getattr(inputs.study, "stand_in", None),
        sections=_sections(items, inputs, {GALLERY: gallery is not None, ANALYSES: bool(analyses)}),
        gallery=gallery,
        analyses=analyses,
        analysis_files={each.name: _analysis_files(each) for each in analyses},
        gallery_files=_gallery_files(folder) if gallery and gallery.places else [],
        origin=origin(inputs),
        sources=Markup(to_html(sources, "recipe_sources")) if sources else "",
        methods=methods(inputs),
        version=__version__,
        style=Markup(loader.get_source(environment, "style.css")[0]),
        script=Markup(loader.get_source(environment, "sort.js")[0]),
    )


def _items(inputs: Inputs, folder: Path | None) -> dict[str, Item]:
    arranged = arranged_tables(inputs.study.references.published)
    tables = {f"{paper.source}_{name}" for paper, name in arranged}
    figures = {each.name: each for each in all_figures()}
    items = {}
    for name, table in build_tables(inputs).items():
        items[f"table:{name}"] = _table(name, table, name in tables)
    for name, drawing in shown_figures(inputs, folder / "figures" if folder else None).items():
        item = _figure(name, drawing, name in figures)
        item.sweep = name in figures and not figures[name].source
        item.paper = name in figures and not item.sweep
        items[f"figure:{name}"] = item
    return items


def _sections(
    items: dict[str, Item], inputs: Inputs, extra: dict[str, bool]
) -> list[tuple[str, str, list[Item]]]:
    """Returns (anchor, title, items) of the sections that the page has; those of ``extra`` bring their own content."""
    groups = {
        PAPERS: [key for key, item in items.items() if item.paper],
        SWEEPS: [key for key, item in items.items() if item.sweep],
    }
    sections = []
    for anchor, title, keys in _in_order(inputs):
        found = [name for key in keys for name in groups.get(key, [key]) if name in items]
        if found or extra.get(anchor):
            sections.append((anchor, title, [items[name] for name in found]))
    named = {key for _, _, keys in SECTIONS for key in keys} | {
        key for found in groups.values() for key in found
    }
    rest = [item for key, item in items.items() if key not in named]
    return [*sections, ("more", "More", rest)] if rest else sections


def _in_order(inputs: Inputs) -> list[tuple[str, str, tuple[str, ...]]]:
    """Returns SECTIONS in the order of this study's page: what papers say comes later where there is nothing to
    compare with it, neither a number nor a claim that was judged."""
    references = inputs.study.references
    claims = inputs.stats.get("claims", pd.DataFrame())
    if (
        references.published
        or references.frozen
        or (len(claims) and (claims["verdict"] != NOT_RUN).any())
    ):
        return list(SECTIONS)
    last = [section for section in SECTIONS if section[0] in OF_PAPERS]
    rest = [section for section in SECTIONS if section[0] not in OF_PAPERS]
    after = next(place for place, section in enumerate(rest) if section[0] == "ablation") + 1
    return [*rest[:after], *last, *rest[after:]]


def _table(name: str, table: Table | NothingToShow, paper: bool) -> Item:
    if isinstance(table, NothingToShow):
        return Item("table", name, TABLES[name].display, reason=str(table))
    item = Item("table", name, table.title, to_html(table, name), paper=paper)
    item.folded = (
        name in FOLDED
        or (name == "published" and table.rows > LONG)
        or (paper and not _measured(table))
    )
    item.downloads = [
        _download("CSV", f"{name}.csv", to_csv(table), "text/csv", "tables"),
        _download("LaTeX", f"{name}.tex", to_latex(table, name), "text/plain", "tables"),
    ]
    return item


def _measured(table: Table) -> bool:
    """Returns whether any cell has a number of ours, which is the first of its numbers."""
    cells = (cell for section in table.sections for row in section.rows for cell in row)
    return any(cell.numbers and cell.numbers[0] is not None for cell in cells)


def _figure(name: str, drawing: Shown | NothingToShow, paper: bool) -> Item:
    if isinstance(drawing, NothingToShow):
        title = title_of(name) if paper else FIGURES[name].display
        return Item("figure", name, title, reason=str(drawing))
    body = inline_svg(drawing.svg, name, drawing.alt)
    item = Item("figure", name, drawing.title, body, drawing.caption)
    item.downloads = [
        _download("Numbers (CSV)", f"{name}.csv", drawing.numbers, "text/csv", "figures"),
    ]
    return item


def _download(
    label: str, file: str, text: str, kind: str, folder: str, source: str = ""
) -> tuple[str, str, str]:
    """Returns (label, name to save under, address): the content itself, or a link when it is large."""
    content = text.encode()
    if len(content) > EMBEDDED:
        return label, file, f"../{folder}/{source or file}"
    return label, file, f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"


def _analysis_files(analysis: ShownAnalysis) -> list[tuple[str, str, str]]:
    return [
        _download(
            label,
            file,
            path.read_text(encoding="utf-8"),
            "text/csv",
            f"{ANALYSES}/{analysis.name}",
            path.name,
        )
        for label, file, path in analysis.files
    ]


def _gallery_files(folder: Path) -> list[tuple[str, str, str]]:
    path = folder / GALLERY / "queries.csv"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [
        _download(
            "Every kept query (CSV)", "gallery_queries.csv", text, "text/csv", GALLERY, path.name
        )
    ]
