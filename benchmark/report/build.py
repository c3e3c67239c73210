"""From ``runs.csv`` and ``scores.csv`` to the report page, in one pass over frames in memory.

Files are outputs only. Verdicts and claims come first. What fails behind them is named on the page
and in ``report/failed.txt``, and costs none of the others.
"""

import contextlib
import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pandas as pd

from benchmark.core.files import begin_folder, write_csv, write_text
from benchmark.core.paths import public, without_paths
from benchmark.core.registry import Registry
from benchmark.papers.claim_verdicts import judge_study_claims
from benchmark.papers.judging import judge_study
from benchmark.papers.printed import Printed, printed_of
from benchmark.papers.quantities import gap_decreases
from benchmark.papers.registration import registration_state
from benchmark.papers.verdicts import table_of
from benchmark.report.drawing import save
from benchmark.report.figures import FIGURES
from benchmark.report.gallery import Choice, write_gallery
from benchmark.report.inputs import Inputs
from benchmark.report.page import Built, build_page, load_analysis
from benchmark.report.papers.figures import paper_figures
from benchmark.report.papers.tables import paper_tables
from benchmark.report.records import Artefact, Gallery, Part
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown, to_page
from benchmark.report.table import NothingToShow
from benchmark.report.tables import TABLES
from benchmark.runs.table import RunTable
from benchmark.stats.analysis import analyse
from benchmark.stats.budgets import analyse_budgets
from benchmark.stats.planning import at_level
from benchmark.stats.queries import Draws
from benchmark.study import Study
from benchmark.study.workflow import FAILED, PAGE


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


def build(study: Study, results: Path, choice: Choice | None = None) -> Built:
    """Make everything behind a study's two tables; ``choice`` is that of the gallery.

    Raise RunError when nothing was collected, ConfigError for an unknown loss of ``choice``.
    """
    choice, attempts = choice or Choice(), Attempts()
    choice.check(study.losses)
    folder, compared = study.folder(results), at_level(study)
    table = RunTable.read(folder)
    verdicts, other = write_verdicts(study, table, folder)
    claims, _ = write_claims(study, table, folder)
    tables, printed = {"verdicts": verdicts, "claims": claims}, Printed()
    with attempts.at("statistics"):
        tables |= write_statistics(compared, table, results)
    with attempts.at("printed numbers"):
        printed = printed_of(compared, table, verdicts, other, gap_decreases(folder))
        printed.write(folder)
    provenance = public(json.loads((folder / "provenance.json").read_text("utf-8")))
    registered = registration_state(study, results)
    inputs = Inputs.of(compared, table, tables, printed, provenance, registered)
    built = Built(
        write_tables(inputs, folder / "tables", attempts),
        write_figures(inputs, folder / "figures", attempts),
        Gallery(study.name, [], "it could not be made"),
        failed=attempts.failed,
    )
    with attempts.at("gallery"):
        built = replace(built, gallery=write_gallery(inputs, results, choice))
    for summary in sorted(folder.glob("analyses/*/summary.json")):
        with attempts.at(f"analysis {summary.parent.name}"):
            built.analyses.append(load_analysis(summary.parent))
    page = f"<!doctype html><title>{study.name}</title>The page could not be made: see its log.\n"
    with attempts.at("page"):
        page = build_page(inputs, built)
    write_text(folder / PAGE, page)
    lines = [f"{name}: {reason}\n" for name, reason in attempts.failed.items()]
    write_text(folder / FAILED, "".join(lines))
    return built


def write_verdicts(
    study: Study, table: RunTable, folder: Path
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write and return the verdicts at both readings of the epoch: see docs/statistics.md."""
    paper, other = (
        write_csv(folder / file, table_of(judge_study(study, table, selection)))
        for file, selection in (("verdicts.csv", "paper"), ("verdicts_other.csv", "other"))
    )
    return paper, other


def write_claims(study: Study, table: RunTable, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write and return the verdicts on claims, and their parts."""
    claims, parts = judge_study_claims(study, table, gap_decreases(folder))
    return (
        write_csv(folder / "claims.csv", claims),
        write_csv(folder / "claims_parts.csv", parts),
    )


def write_statistics(study: Study, table: RunTable, results: Path) -> dict[str, pd.DataFrame]:
    """Write and return intervals, tests, the ablation, ranks and rates by name."""
    comparison = study.comparison
    draws = Draws.read(table, results, study.metrics, 1 - comparison.alpha)
    tables = analyse(table, comparison, study.metrics, draws)
    if study.references.trials:
        trials = RunTable.read(results / study.references.trials)
        tables |= analyse_budgets(trials, table, study.metrics[0], comparison.alpha)
    begin_folder(folder := study.folder(results) / "stats")
    return {name: write_csv(folder / f"{name}.csv", each) for name, each in tables.items()}


def parts_of_tables(inputs: Inputs) -> Iterator[Part]:
    """Yield the study's own tables, then those that its papers print, then that of its sweeps."""
    yield from _registered(TABLES, inputs.study.tables, inputs)
    yield from paper_tables(inputs)


def parts_of_figures(inputs: Inputs) -> Iterator[Part]:
    """Yield the study's own figures, then the papers', then its sweeps."""
    yield from _registered(FIGURES, inputs.study.figures, inputs)
    yield from paper_figures(inputs)


def _registered(
    registry: Registry, wanted: tuple[str, ...] | None, inputs: Inputs
) -> Iterator[Part]:
    for name in registry.names() if wanted is None else wanted:
        entry = registry[name]
        if wanted is None and entry.facts["of_trials"] and not inputs.study.references.trials:
            continue
        yield Part(name, entry.display, "study", partial(entry.target, inputs))


def write_tables(inputs: Inputs, folder: Path, attempts: Attempts) -> list[Artefact]:
    """Write the tables of a study as CSV, Markdown, LaTeX and HTML into ``folder`` from scratch.

    One without data leaves a Markdown file with the reason.
    """
    begin_folder(folder)
    made = [_made(part, _write_table, folder, attempts) for part in parts_of_tables(inputs)]
    for each in made:
        if each.reason:
            write_text(folder / f"{each.name}.md", f"### {each.title}\n\n{each.reason}\n")
    return made


def write_figures(inputs: Inputs, folder: Path, attempts: Attempts) -> list[Artefact]:
    """Write the figures of a study as SVG, PDF and CSV into ``folder`` from scratch."""
    begin_folder(folder)
    return [_made(part, _write_figure, folder, attempts) for part in parts_of_figures(inputs)]


def _made(
    part: Part, write: Callable[[Part, Path], Artefact], folder: Path, attempts: Attempts
) -> Artefact:
    """Return what was made of a part, or a record with the reason why there is nothing."""
    reason = "it could not be made"
    with attempts.at(f"{folder.name.removesuffix('s')} {part.name}"):
        try:
            return write(part, folder)
        except NothingToShow as why:
            reason = str(why)
    return Artefact(part.name, part.title, part.group, reason=reason)


def _write_table(part: Part, folder: Path) -> Artefact:
    name, group, table = part.name, part.group, part.make()
    texts = {
        "csv": to_csv(table),
        "md": to_markdown(table),
        "tex": to_latex(table, name),
        "html": to_page(table, name),
    }
    for kind, text in texts.items():
        write_text(folder / f"{name}.{kind}", text)
    cells = (cell for section in table.sections for row in section.rows for cell in row)
    measured = any(cell.numbers and cell.numbers[0] is not None for cell in cells)
    html = to_html(table, name)
    return Artefact(
        name, table.title, group, rows=table.rows, html=html, measured=measured, files=texts
    )


def _write_figure(part: Part, folder: Path) -> Artefact:
    drawing = part.make()
    texts = save(drawing, folder, part.name)
    rows, caption, alt = len(drawing.data), drawing.caption, drawing.alt
    return Artefact(
        part.name, drawing.title, part.group, rows=rows, caption=caption, alt=alt, files=texts
    )
