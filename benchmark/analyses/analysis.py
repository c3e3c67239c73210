"""What an analysis is, the files that it leaves, and the numbers and words that several print."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.analyses import ANALYSES
from benchmark.analyses.context import Context
from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.files import write_text
from benchmark.report.drawing import Drawing, save
from benchmark.report.labels import listed as joined
from benchmark.report.records import AnalysedRun, AnalysisSummary, Finding, Verdict
from benchmark.report.render import to_csv, to_html, to_markdown
from benchmark.report.table import Column, Table, TableCell, grouped, text_column
from benchmark.stats.intervals import t_interval

_VERDICTS: dict[bool | None, tuple[Verdict, str]] = {
    True: ("supported", "This agrees with the paper."),
    False: ("contradicted", "This does not agree with the paper."),
    None: ("inconclusive", "This decides neither way."),
}


@dataclass(frozen=True)
class Analysis:
    """A finished analysis; ``notes`` are sentences that judge no claim, made of the numbers too."""

    drawing: Drawing
    table: Table
    claims: list[Finding]
    notes: list[str] = field(default_factory=list)


def make(name: str, context: Context, folder: Path) -> AnalysisSummary:
    """Make one analysis, write its figure, table and summary into ``folder``; return the last."""
    entry = ANALYSES[name]
    analysis: Analysis = entry.target(context)
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


def finding(name: str, place: str, says: str, found: str, holds: bool | None) -> Finding:
    """Return what was found about a statement: it holds, it does not, or it is open (None)."""
    verdict, judgement = _VERDICTS[holds]
    return Finding(name, place, says, found, verdict, f"{found} {judgement}")


def table(
    title: str,
    caption: str,
    headers: Iterable[Sequence[str]],
    rows: Iterable[tuple[str, Iterable[str | float]]],
    digits: int = 3,
) -> Table:
    """Return the table of (title of the section, values) pairs.

    The first row says which columns hold words; numbers get ``digits`` significant digits.
    """
    lines = [(section, [*values]) for section, values in rows]
    columns = []
    for header, first in zip(headers, lines[0][1], strict=True):
        words = (header,) if isinstance(header, str) else tuple(header)
        columns.append(text_column(*words) if isinstance(first, str) else Column(words, ("",)))
    filled = ((section, [_cell(value, digits) for value in values]) for section, values in lines)
    return Table(title, caption, columns, grouped(filled))


def _cell(value: str | float, digits: int) -> TableCell:
    if isinstance(value, str):
        return TableCell(value)
    if not math.isfinite(value):
        return TableCell("")
    number = float(value) + 0.0  # no "-0"
    return TableCell(f"{number:.{digits}g}".replace("e-0", "e-"), numbers=(number,))


def shades(colour: str, count: int) -> list[np.ndarray]:
    """Return ``count`` tones of a colour from light to dark, distinct from white and black."""
    from matplotlib.colors import to_rgb

    base = np.array(to_rgb(colour))
    depths = np.linspace(-1, 1, count)  # -1 lightest, 0 the colour itself, 1 darkest
    return [base - depth * (0.55 * (1 - base) if depth < 0 else 0.3 * base) for depth in depths]


def listed(values: Iterable[Any], form: str = "g") -> str:
    """Return "1, 2 and 3"."""
    return joined([format(value, form) for value in values])


def rising(values: Sequence[float]) -> bool:
    """Return whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))


def judged(changes: Iterable[float], form: str) -> tuple[str, bool | None]:
    """Return the mean change over seeds and its interval in words, and whether it is above 0.

    The second is None where the interval, or one seed, decides nothing.
    """
    found = t_interval(changes)
    if found.n < 2:
        return f"{found.mean:{form}} (one seed)", None
    words = f"{found.mean:{form}} (95% interval {found.low:{form}} to {found.high:{form}})"
    return words, found.low > 0 if found.low > 0 or found.high < 0 else None
