"""Figures as they were last drawn, so that the report need not draw again what the plots just drew.

``figures.json`` beside the files holds the words of each figure and the state that they were drawn from: the study,
the numbers, and this package's sources. With any other state everything is drawn anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.core.code_version import PACKAGE, code_version
from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.records import read_json
from benchmark.report.figures.build import build_figures
from benchmark.report.figures.drawing import Drawing, save, to_csv, to_svg
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.table import NothingToShow

FILE = "figures.json"
KINDS = ("svg", "pdf", "csv")
SOURCES = (".py", ".yaml", ".csv")


@dataclass(frozen=True)
class Shown:
    """A drawn figure: its words, the text of its SVG, and the CSV of the numbers behind it."""

    title: str
    caption: str
    alt: str
    svg: str
    numbers: str


def shown_figures(inputs: Inputs, folder: Path | None) -> dict[str, Shown | NothingToShow]:
    """Returns every figure of the study by name, from ``folder`` where it holds them as they would be drawn now."""
    kept = _kept(inputs, folder) if folder else None
    if kept is not None:
        return kept
    return {name: _shown(drawing) for name, drawing in build_figures(inputs).items()}


def write_figures(inputs: Inputs, folder: Path) -> dict[str, str]:
    """Writes the figures below ``folder`` and returns {name: what was written, or why not}.

    A figure without data takes away the files of an earlier state, so that no stale figure is shown.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).unlink(missing_ok=True)
    report, words = {}, []
    for name, drawing in build_figures(inputs).items():
        if isinstance(drawing, NothingToShow):
            for kind in KINDS:
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
            report[name] = f"nothing to show: {drawing}"
            words.append({"name": name, "reason": str(drawing)})
        else:
            save(drawing, folder, name)
            report[name] = f"{len(drawing.data)} numbers"
            words.append(
                {
                    "name": name,
                    "title": drawing.title,
                    "caption": drawing.caption,
                    "alt": drawing.alt,
                }
            )
    write_json(folder / FILE, {"state": state(inputs), "figures": words})
    return report


def state(inputs: Inputs) -> str:
    """Returns a digest of all that decides how the figures look, packages apart."""
    digest = hashlib.sha256(f"{inputs.study.digest}\0{code_version()}".encode())
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in SOURCES):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes())
    for name, frame in [("runs", inputs.runs), *sorted(inputs.stats.items())]:
        digest.update(f"{name}\0{list(frame.columns)}".encode())
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    digest.update(repr(inputs.printed).encode())
    return digest.hexdigest()


def _kept(inputs: Inputs, folder: Path) -> dict[str, Shown | NothingToShow] | None:
    """Returns the figures in ``folder``, or None where they are not all there or come from another state."""
    try:
        found = read_json(Path(folder) / FILE, "the figures' words")
        if found["state"] == state(inputs):
            return {words["name"]: _read(Path(folder), **words) for words in found["figures"]}
    except (RunError, OSError, LookupError, TypeError):
        pass  # drawing anew is always right
    return None


def _read(
    folder: Path, name: str, reason: str | None = None, **words: str
) -> Shown | NothingToShow:
    if reason is not None:
        return NothingToShow(reason)
    svg, numbers = (
        (folder / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("svg", "csv")
    )
    return Shown(**words, svg=svg, numbers=numbers)


def _shown(drawing: Drawing | NothingToShow) -> Shown | NothingToShow:
    if isinstance(drawing, NothingToShow):
        return drawing
    return Shown(drawing.title, drawing.caption, drawing.alt, to_svg(drawing), to_csv(drawing))
