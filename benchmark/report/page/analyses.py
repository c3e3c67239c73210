"""The analyses of a study on its page, from the files that each left behind (docs/analyses.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.privacy import public
from benchmark.report.figures.drawing import inline_svg
from benchmark.report.page.glance import CLAIM_TONES

SCHEMA = 1
SUMMARY = "summary.json"


@dataclass(frozen=True)
class ShownAnalysis:
    """One analysis as the page shows it; ``reason`` instead of everything else when its files cannot be read."""

    name: str
    title: str
    places: tuple[str, ...] = ()
    figure: str = ""  # an svg element
    table: str = ""  # a figure element
    caption: str = ""
    claims: tuple[dict[str, str], ...] = ()  # each with place, says, found, verdict, tone
    findings: tuple[str, ...] = ()  # sentences that judge no claim
    note: str = ""
    trained: bool = False
    files: tuple[tuple[str, str, Path], ...] = ()  # (label, name to save under, file)
    reason: str = ""


def load_analyses(folder: Path) -> list[ShownAnalysis]:
    """Returns the analyses below ``folder`` (``results/<study>/analyses``) in alphabetical order; none without it."""
    return [_load(path.parent) for path in sorted(Path(folder).glob(f"*/{SUMMARY}"))]


def _load(folder: Path) -> ShownAnalysis:
    name = folder.name
    try:
        summary = public(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
        if summary.get("schema") != SCHEMA:
            words = f"its summary has schema {summary.get('schema')}, this version reads {SCHEMA}"
            return ShownAnalysis(name, summary.get("title", name), reason=f"{words}; make it again")
        figure = inline_svg(
            (folder / "figure.svg").read_text(encoding="utf-8"), f"analysis-{name}", summary["alt"]
        )
        table = folder / "table.html"
        judged = {claim["sentence"] for claim in summary["claims"]}
        return ShownAnalysis(
            name=name,
            title=summary["title"],
            places=tuple(summary["places"]),
            figure=figure,
            table=table.read_text(encoding="utf-8") if table.is_file() else "",
            caption=summary["caption"],
            claims=tuple(
                {**claim, "tone": CLAIM_TONES.get(claim["verdict"], "")}
                for claim in summary["claims"]
            ),
            findings=tuple(sentence for sentence in summary["sentences"] if sentence not in judged),
            note=_note(summary),
            trained=bool(summary.get("runs")),
            files=tuple(
                (label, f"{name}_{file}", folder / file)
                for label, file in (
                    ("Numbers of the figure (CSV)", "figure.csv"),
                    ("Table (CSV)", "table.csv"),
                )
                if (folder / file).is_file()
            ),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return ShownAnalysis(
            name, name, reason=f"its files cannot be read ({type(error).__name__}); make it again"
        )


def _note(summary: dict[str, Any]) -> str:
    runs = summary.get("runs") or []
    if summary.get("quick"):
        return "A quick trial on tiny data: its numbers mean nothing."
    if not runs:
        return "Nothing was trained for it."
    seeds = ", ".join(map(str, summary.get("seeds") or []))
    return f"Networks trained for it: {len(runs)}, with seeds {seeds}; code {summary.get('code_version')}."
