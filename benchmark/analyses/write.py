"""Makes analyses and leaves their files: figure.svg, .pdf and .csv, table.csv, .md and .html, summary.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis
from benchmark.analyses.context import Context
from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.files import write_json, write_text
from benchmark.report.figures.drawing import save
from benchmark.report.tables.as_csv import to_csv
from benchmark.report.tables.as_html import to_html
from benchmark.report.tables.as_markdown import to_markdown

SCHEMA = 1
SUMMARY = "summary.json"


def make(name: str, context: Context, folder: Path) -> dict[str, Any]:
    """Makes one analysis, writes its files into ``folder`` and returns its summary."""
    entry = ANALYSES[name]
    analysis = entry.target(context)
    folder = Path(folder)
    save(analysis.drawing, folder, "figure")
    write_text(folder / "table.csv", to_csv(analysis.table))
    write_text(folder / "table.md", to_markdown(analysis.table))
    write_text(folder / "table.html", to_html(analysis.table, f"analysis-{name}"))
    summary = summary_of(name, analysis, context)
    # last, because its presence says that the others are whole
    write_json(folder / SUMMARY, summary)
    return summary


def summary_of(name: str, analysis: Analysis, context: Context) -> dict[str, Any]:
    """Returns the content of summary.json: all that a page says beside the figure and the table."""
    entry = ANALYSES[name]
    return {
        "schema": SCHEMA,
        "name": name,
        "title": entry.display,
        "places": list(entry.facts.get("places", ())),
        "caption": analysis.drawing.caption,
        "alt": analysis.drawing.alt,
        "table_caption": analysis.table.caption,
        "table_notes": analysis.table.notes,
        "sentences": [*(claim.sentence for claim in analysis.claims), *analysis.notes],
        "claims": [{**vars(claim), "sentence": claim.sentence} for claim in analysis.claims],
        "code_version": code_version(),
        "platform": provenance.platform_label(),
        **context.provenance(),
    }
