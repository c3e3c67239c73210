"""Make analyses and leave their files: figure.svg, .pdf, .csv, table.csv, .md, .html, summary."""

from pathlib import Path

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis
from benchmark.analyses.context import Context
from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.errors import RunError
from benchmark.core.files import write_text
from benchmark.report.drawing import save
from benchmark.report.records import AnalysedRun, AnalysisSummary
from benchmark.report.render import to_csv, to_html, to_markdown
from benchmark.report.table import NothingToShow


def make(name: str, context: Context, folder: Path) -> AnalysisSummary:
    """Make one analysis, write its files into ``folder`` and return its summary.

    Raise RunError for an analysis that has nothing to show.
    """
    entry = ANALYSES[name]
    try:
        return _written(name, entry.target(context), context, folder)
    except NothingToShow as reason:
        raise RunError(f"analysis '{name}' has nothing to show: {reason}") from None


def _written(name: str, analysis: Analysis, context: Context, folder: Path) -> AnalysisSummary:
    entry = ANALYSES[name]
    save(analysis.drawing, folder, "figure")
    write_text(folder / "table.csv", to_csv(analysis.table))
    write_text(folder / "table.md", to_markdown(analysis.table))
    write_text(folder / "table.html", to_html(analysis.table, f"analysis-{name}"))
    summary = AnalysisSummary(
        name=name,
        title=entry.display,
        places=list(entry.facts["places"]),
        caption=analysis.drawing.caption,
        alt=analysis.drawing.alt,
        table_caption=analysis.table.caption,
        table_notes=analysis.table.notes,
        sentences=[claim.sentence for claim in analysis.claims] + analysis.notes,
        claims=analysis.claims,
        code_version=code_version(),
        platform=provenance.platform_label(),
        study=context.study.name,
        quick=context.quick,
        seeds=sorted({spec.seed for spec in context.used}),
        runs=[AnalysedRun(spec.run_id, spec.digest) for spec in context.used],
    )
    summary.write(folder)
    return summary
