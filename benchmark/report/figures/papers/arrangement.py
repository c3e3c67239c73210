"""Reading ``figures.yaml`` (of the papers) and ``sweeps.yaml`` (of the study of that name): what each figure shows,
and from which runs; every problem at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ReferenceDataError, unknown_name

FILE = Path(__file__).parent / "figures.yaml"
SWEEPS = Path(__file__).parent / "sweeps.yaml"
OPTION = "option"  # an x that is an option of the recipe
KINDS = ("sweep", "gain", "convergence", "effect")
_NEEDED = {
    "sweep": {"x"},
    "gain": {"loss_against"},
    "convergence": set(),
    "effect": {"parameter", "first", "second"},
}
_COMMON = {"title", "loss", "metric", "backbone", "series"}


@dataclass(frozen=True)
class Place:
    """Where a series is measured, and the published data set and protocol that it stands beside.

    dataset   label of our runs
    split     of our runs; empty means the only test split
    printed   data set of the published rows, where it is not ``dataset``
    protocol  of the published rows
    """

    dataset: str
    split: str = ""
    printed: str = ""
    protocol: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel; which fields count depends on the kind of its figure."""

    title: str
    loss: str
    metric: str
    backbone: str
    series: tuple[Place, ...]
    x: str = ""
    along: tuple[str, ...] = ()
    label: str = ""
    scale: str = "linear"
    batch_size: int | None = None
    baseline: str = ""
    published: dict[str, Any] | None = None
    loss_against: str = ""
    parameter: str = ""
    first: Any = None
    second: Any = None
    options: tuple[tuple[str, Any], ...] = ()
    claims: tuple[str, ...] = ()
    default: Any = None


@dataclass(frozen=True)
class PaperFigure:
    """One figure of a paper; ``paper`` and ``figure`` are names of the published results, if it is printed in one."""

    name: str
    paper: str
    figure: str
    title: str
    kind: str
    studies: tuple[str, ...]
    panels: tuple[Panel, ...]
    printed: bool = True


@functools.cache
def paper_figures(path: Path = FILE) -> tuple[PaperFigure, ...]:
    """Returns the arranged figures of ``path`` (default: those of the papers).

    Raises ReferenceDataError with every problem of the file.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ReferenceDataError(f"{path} cannot be read as YAML ({error})") from error
    problems: list[str] = []
    found = []
    for name, entry in (data or {}).items():
        kind = entry.get("kind", "")
        if kind not in KINDS:
            problems.append(f"{name}.kind: {unknown_name('kind of figure', kind, KINDS)}")
            continue
        before = len(problems)
        problems += [
            f"{name}.{key}: is missing"
            for key in ("title", "studies", "panels")
            if key not in entry
        ]
        for number, panel in enumerate(entry.get("panels", [])):
            problems += [f"{name}.panels.{number}.{text}" for text in _panel_problems(panel, kind)]
        if len(problems) == before:
            paper, figure = name.rsplit("_", 1)
            panels = tuple(_panel(each) for each in entry["panels"])
            studies = tuple(entry["studies"])
            found.append(
                PaperFigure(
                    name, paper, figure, entry["title"], kind, studies, panels, path != SWEEPS
                )
            )
    if problems:
        raise ReferenceDataError(f"{path}: " + "; ".join(problems))
    return tuple(found)


def sweep_figures() -> tuple[PaperFigure, ...]:
    """Returns the figures of the study "sweeps", which no paper prints."""
    return paper_figures(SWEEPS)


def on_stand_in(figure: PaperFigure, dataset: str) -> PaperFigure:
    """Returns the figure with ``dataset`` in place of every data set: panels that become equal are drawn once."""
    panels: dict[Panel, None] = {}
    for panel in figure.panels:
        title = dataset if figure.kind in ("gain", "convergence") else panel.title
        panels[replace(panel, title=title, series=(Place(dataset),), published=None)] = None
    return replace(figure, panels=tuple(panels))


def _panel(data: dict[str, Any]) -> Panel:
    series = tuple(Place(**each) for each in data["series"])
    lists = {key: tuple(data.get(key, ())) for key in ("along", "claims")}
    return Panel(
        **{**data, **lists, "series": series, "options": tuple(data.get("options", {}).items())}
    )


def _panel_problems(panel: dict[str, Any], kind: str) -> list[str]:
    known = set(Panel.__dataclass_fields__)
    found = [
        f"{key}: unknown; allowed: {', '.join(sorted(known))}" for key in sorted(set(panel) - known)
    ]
    found += [f"{key}: is missing" for key in sorted((_COMMON | _NEEDED[kind]) - set(panel))]
    if panel.get("x") == OPTION and not isinstance(panel.get("options"), dict):
        found.append(
            "options: is missing; name the options of the recipe and their places on the axis"
        )
    places = set(Place.__dataclass_fields__)
    for number, each in enumerate(panel.get("series", [])):
        if set(each) - places or "dataset" not in each:
            found.append(f"series.{number}: needs dataset; allowed: {', '.join(sorted(places))}")
    return found
