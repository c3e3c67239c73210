"""From ``runs.csv`` and ``scores.csv`` to the report page, in one pass over frames in memory.

Files are outputs only. Verdicts and claims come first. What fails behind them is named on the page
and in ``report/failed.txt``, and costs none of the others.
"""

import contextlib
import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.claims.claim_verdicts import judge_study_claims
from benchmark.core.files import begin_folder, write_csv, write_text
from benchmark.core.paths import public, without_paths
from benchmark.core.records import FAILED, PAGE
from benchmark.published.quantities import gap_decreases
from benchmark.report.artefacts import Artefact, Kind, PlannedArtefact
from benchmark.report.drawing import inline_svg, save
from benchmark.report.figures import FIGURES
from benchmark.report.figures.printed_figures import paper_figures
from benchmark.report.gallery import Gallery, PairChoice, write_gallery
from benchmark.report.page import Built, build_page, load_analysis
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown, to_page
from benchmark.report.study_results import StudyResults
from benchmark.report.table import NothingToShow
from benchmark.report.tables import TABLES
from benchmark.report.tables.printed_tables import paper_tables
from benchmark.report.tables.side_by_side import laboratory_tables
from benchmark.runs.run_table import RunTable
from benchmark.stats.budgets import analyse_budgets
from benchmark.stats.planning import at_level
from benchmark.stats.queries import drawn_queries
from benchmark.stats.study_tables import analyse, side_by_side
from benchmark.study import Study
from benchmark.verdicts.judging import write_verdicts
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed, printed_of
from benchmark.verdicts.registration import registration_state
from benchmark.verdicts.verdicts import OTHER, PAPERS


@dataclass(frozen=True)
class Attempts:
    """What could not be made, and why, by what it is: one that fails leaves the others alone."""

    failed: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Keep an error of the block, whatever it is; its traceback is printed."""
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.failed[name] = without_paths(f"{type(error).__name__}: {error}")


def build(study: Study, results: Path, choice: PairChoice) -> Built:
    """Make all behind a study's two tables; raise RunError without them or ConfigError."""
    attempts = Attempts()
    choice.check(study.losses)
    folder = study.folder(results)
    table = RunTable.read(folder)
    grid = StudyGrid.of(study)
    compared = replace(grid, study=at_level(study))
    judged = write_verdicts(grid, table, folder)
    frames = {"verdicts": judged[PAPERS], "claims": write_claims(grid, table, folder)}
    printed = Printed()
    with attempts.at("statistics"):
        frames |= write_statistics(compared.study, table, results)
    with attempts.at("printed numbers"):
        gaps = gap_decreases(folder)
        printed = printed_of(compared, table, judged[PAPERS], judged[OTHER], gaps)
    provenance = public(json.loads((folder / "provenance.json").read_text("utf-8")))
    registered = registration_state(grid, results)
    inputs = StudyResults.of(compared, table, frames, printed, provenance, registered)
    artefacts = write_artefacts("table", inputs, folder / "tables", attempts)
    artefacts += write_artefacts("figure", inputs, folder / "figures", attempts)
    gallery = Gallery([], "it could not be made")
    with attempts.at("gallery"):
        gallery = write_gallery(inputs, results, choice)
    analyses = []
    for summary in sorted(folder.glob("analyses/*/summary.json")):
        with attempts.at(f"analysis {summary.parent.name}"):
            analyses.append(load_analysis(summary.parent))
    built = Built(artefacts, gallery, analyses, attempts.failed)
    page = f"<!doctype html><title>{study.name}</title>The page could not be made: see its log.\n"
    with attempts.at("page"):
        page = build_page(inputs, built)
    write_text(folder / PAGE, page)
    lines = [f"{name}: {reason}\n" for name, reason in attempts.failed.items()]
    write_text(folder / FAILED, "".join(lines))
    return built


def write_claims(grid: StudyGrid, table: RunTable, folder: Path) -> pd.DataFrame:
    """Write the verdicts on claims, and on their parts; return the former."""
    claims, parts = judge_study_claims(grid, table, gap_decreases(folder))
    write_csv(folder / "claims_parts.csv", parts)
    return write_csv(folder / "claims.csv", claims)


def write_statistics(study: Study, table: RunTable, results: Path) -> dict[str, pd.DataFrame]:
    """Write and return intervals, tests, the ablation, ranks and rates by name."""
    comparison = study.comparison
    draws = drawn_queries(table, results, study.metrics)
    tables = analyse(table, comparison, study.metrics, draws)
    if study.references.trials:
        trials = RunTable.read(results / study.references.trials)
        tables |= analyse_budgets(trials, table, study.metrics[0], comparison.alpha)
    folder = study.folder(results)
    runs = {"": table}
    for other in sorted(folder.glob("@*")):
        runs[other.name[1:]] = RunTable.read(other)
    if len(runs) > 1:
        tables["laboratories"] = side_by_side(runs, study.metrics, comparison.alpha)
    begin_folder(folder := folder / "stats")
    return {name: write_csv(folder / f"{name}.csv", each) for name, each in tables.items()}


def planned_artefacts(kind: Kind, inputs: StudyResults) -> Iterator[PlannedArtefact]:
    """Yield the study's own tables or figures, then those of its papers, then its sweeps."""
    study = inputs.study
    if kind == "table":
        registry = TABLES
        wanted = study.tables
        of_papers = paper_tables(inputs)
        yield from laboratory_tables(inputs)
    else:
        registry = FIGURES
        wanted = study.figures
        of_papers = paper_figures(inputs)
    for name in registry.names() if wanted is None else wanted:
        entry = registry[name]
        if wanted or study.references.trials or not entry.facts["of_trials"]:
            yield PlannedArtefact(name, entry.display, "study", partial(entry.target, inputs))
    yield from of_papers


def write_artefacts(
    kind: Kind, inputs: StudyResults, folder: Path, attempts: Attempts
) -> list[Artefact]:
    """Write the tables or figures of a study into ``folder`` from scratch.

    A table without data leaves a Markdown file with the reason.
    """
    begin_folder(folder)
    write = _write_table if kind == "table" else _write_figure
    artefacts = []
    for planned in planned_artefacts(kind, inputs):
        name = planned.name
        artefact = Artefact(kind, name, planned.title, planned.group, "it could not be made")
        with attempts.at(f"{kind} {name}"):
            try:
                artefact = replace(artefact, reason="", **write(planned, folder))
            except NothingToShow as reason:
                artefact = replace(artefact, reason=str(reason))
        if kind == "table" and artefact.reason:
            write_text(folder / f"{name}.md", f"### {planned.title}\n\n{artefact.reason}\n")
        artefacts.append(artefact)
    return artefacts


def _write_table(planned: PlannedArtefact, folder: Path) -> dict[str, Any]:
    """Write the files of a table; return the fields of its record."""
    name = planned.name
    table = planned.make()
    element = to_html(table, name)
    files = {
        "csv": to_csv(table),
        "md": to_markdown(table),
        "tex": to_latex(table, name),
        "html": to_page(table, element),
    }
    for kind, text in files.items():
        write_text(folder / f"{name}.{kind}", text)
    numbers = [cell.numbers for section in table.sections for row in section.rows for cell in row]
    return {
        "title": table.title,
        "rows": table.rows,
        "element": element,
        "measured": any(behind and behind[0] is not None for behind in numbers),
        "files": files,
    }


def _write_figure(planned: PlannedArtefact, folder: Path) -> dict[str, Any]:
    """Write the files of a figure; return the fields of its record."""
    drawing = planned.make()
    files = save(drawing, folder, planned.name, planned.title)
    return {
        "rows": len(drawing.data),
        "caption": drawing.caption,
        "element": inline_svg(files["svg"], f"figure-{planned.name}", drawing.alt),
        "files": files,
    }
