"""The analyses of a study on its page, from the files that each left behind (docs/analyses.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmark.core.errors import BenchmarkError
from benchmark.core.paths import file_below, read_regular
from benchmark.core.privacy import without_paths
from benchmark.report.analysis import SUMMARY, AnalysisSummary
from benchmark.report.drawing.drawing import inline_svg
from benchmark.report.page.files import Download, download
from benchmark.report.page.sanitised import safe_html, safe_svg

FOLDER = "analyses"
FILES = {"figure.csv": "Numbers of the figure (CSV)", "table.csv": "Table (CSV)"}


@dataclass(frozen=True)
class AnalysisItem:
    """One analysis on the page; ``reason`` in place of the rest when its files cannot be read."""

    name: str
    title: str
    reason: str = ""
    summary: AnalysisSummary | None = None
    figure: str = ""  # an svg element
    table: str = ""  # a figure element
    note: str = ""
    downloads: tuple[Download, ...] = ()


def load_analyses(study: Path) -> list[AnalysisItem]:
    """Return the analyses in a study's folder by name; none where there are none."""
    found = sorted((study / FOLDER).glob(f"*/{SUMMARY}"))
    return [_load(study, path.parent.name) for path in found]


def _load(study: Path, name: str) -> AnalysisItem:
    folder = study / FOLDER / name
    try:
        summary = AnalysisSummary.read(folder)
        svg = read_regular(file_below(study, f"{FOLDER}/{name}/figure.svg")).decode()
        table = file_below(study, f"{FOLDER}/{name}/table.html")
        return AnalysisItem(
            name=name,
            title=summary.title,
            summary=summary,
            figure=inline_svg(safe_svg(svg), f"analysis-{name}", summary.alt),
            table=safe_html(table.read_text(encoding="utf-8")) if table.is_file() else "",
            note=_note(summary),
            downloads=tuple(
                download(label, study, f"{FOLDER}/{name}/{file}", f"{name}_{file}")
                for file, label in FILES.items()
                if (folder / file).is_file()
            ),
        )
    except (BenchmarkError, OSError, ValueError) as error:
        return AnalysisItem(name, name, reason=without_paths(str(error)))


def _note(summary: AnalysisSummary) -> str:
    if summary.quick:
        return "A quick trial on tiny data: its numbers mean nothing."
    if not summary.runs:
        return "Nothing was trained for it."
    seeds = ", ".join(map(str, summary.seeds))
    trained = f"Networks trained for it: {len(summary.runs)}, with seeds {seeds}"
    return f"{trained}; code {summary.code_version}."
