"""The verbs that turn results into tables, figures and the report page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS

Name = Annotated[
    str,
    typer.Argument(metavar="STUDY", help="name of a study in workflow/config, or a path to one"),
]
Results = Annotated[Path, typer.Option("--results", help="the results folder")]


def register(app: typer.Typer) -> None:
    """Add ``tables``, ``plots`` and ``report`` to the command line."""
    for verb in (tables, plots, report):
        app.command()(verb)


def tables(study: Name, results: Results = RESULTS) -> None:
    """Write the tables of a study as CSV, Markdown, LaTeX and HTML.

    Example: python -m benchmark tables embedded
    """
    _write("tables", study, results)


def plots(study: Name, results: Results = RESULTS) -> None:
    """Draw the figures of a study as SVG and PDF, with a CSV of the numbers behind each.

    Example: python -m benchmark plots embedded
    """
    _write("figures", study, results)


def report(
    study: Name,
    results: Results = RESULTS,
    partial: Annotated[
        bool, typer.Option("--partial", help="build the page even before anything was collected")
    ] = False,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="also print it to report.pdf, with a headless Chromium")
    ] = False,
) -> None:
    """Write the report page of a study from its tables, figures and other files.

    It is one file that opens from disk, without network.

    Example: python -m benchmark report embedded --pdf
    """
    from benchmark.core.errors import RunError, derived_files
    from benchmark.report.page import write_report
    from benchmark.study import load_study

    loaded = load_study(study, results)
    table = loaded.folder(results) / "runs.csv"
    if not partial and not table.is_file():
        raise RunError(
            f"{table} does not exist, so there is nothing to report; run 'python -m benchmark "
            f"collect {study}' first, or add --partial for a page that says what is missing"
        )
    with derived_files(table.parent):
        page = write_report(loaded, results)
    typer.echo(page)
    if pdf:
        from benchmark.report.page.pdf import write_pdf

        typer.echo(write_pdf(page))


def _write(kind: str, study: str, results: Path) -> None:
    from benchmark.core.errors import derived_files
    from benchmark.report import steps
    from benchmark.report.inputs import read_inputs
    from benchmark.study import load_study

    loaded = load_study(study, results)
    folder = loaded.folder(results) / kind
    write = steps.write_tables if kind == "tables" else steps.write_figures
    with derived_files(folder.parent):
        made = write(read_inputs(loaded, results), folder)
    typer.echo(f"{folder}:")
    for artefact in made:
        typer.echo(f"  {artefact.name}: {artefact.summary}")
    if not (folder.parent / "runs.csv").is_file():
        typer.echo(
            f"nothing was collected yet: 'python -m benchmark run {study}' trains the study, "
            f"'python -m benchmark collect {study}' takes the runs there are"
        )
