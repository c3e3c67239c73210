"""Builds the tables that a study asks for and writes each as CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmark.core.files import write_text
from benchmark.report.tables import TABLES
from benchmark.report.tables.as_csv import to_csv
from benchmark.report.tables.as_html import to_page
from benchmark.report.tables.as_latex import to_latex
from benchmark.report.tables.as_markdown import to_markdown
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.papers.render import paper_tables
from benchmark.report.tables.sweeps import sweep_tables
from benchmark.report.tables.table import NothingToShow, Table


def build_tables(inputs: Inputs) -> dict[str, Table | NothingToShow]:
    """Returns each table of the study, or the reason why there is none, by name; last the papers' own tables, of which
    a study shows those that its ``references.published`` names, and that of its sweeps."""
    found: dict[str, Table | NothingToShow] = {}
    wanted = TABLES.names() if inputs.study.tables is None else inputs.study.tables
    for name in wanted:
        try:
            found[name] = TABLES[name].target(inputs.runs, inputs.stats, inputs.study)
        except NothingToShow as reason:
            found[name] = reason
    found.update(paper_tables(inputs.printed, inputs.study))
    found.update(
        sweep_tables(inputs.printed, inputs.stats.get("claims", pd.DataFrame()), inputs.study)
    )
    return found


def write_tables(inputs: Inputs, folder: Path) -> dict[str, str]:
    """Writes the tables below ``folder`` and returns {name: what was written, or why not}.

    A table without data leaves a Markdown file with the reason and takes away files of an earlier state.
    """
    report = {}
    for name, table in build_tables(inputs).items():
        paths = {kind: Path(folder) / f"{name}.{kind}" for kind in ("csv", "md", "tex", "html")}
        if isinstance(table, NothingToShow):
            for path in paths.values():
                path.unlink(missing_ok=True)
            write_text(paths["md"], f"### {TABLES[name].display}\n\n{table}\n")
            report[name] = f"nothing to show: {table}"
            continue
        write_text(paths["csv"], to_csv(table))
        write_text(paths["md"], to_markdown(table))
        write_text(paths["tex"], to_latex(table, name))
        write_text(paths["html"], to_page(table, name))
        report[name] = f"{table.rows} rows"
    return report
