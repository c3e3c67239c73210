"""The verbs that make statistics, gallery, tables, figures and the report page of a study."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import MAX_SEED, Results, StudyName, app, echo, load
from benchmark.core.records import RESULTS


@app.command()
def tables(study: StudyName, results: Results = RESULTS) -> None:
    """Write the tables of a study as CSV, Markdown, LaTeX and HTML.

    Example: python -m benchmark tables embedded
    """
    _write("tables", "tables", study, results)


@app.command()
def plots(study: StudyName, results: Results = RESULTS) -> None:
    """Draw the figures of a study as SVG and PDF, with a CSV of the numbers behind each.

    Example: python -m benchmark plots embedded
    """
    _write("plots", "figures", study, results)


@app.command()
def report(
    study: StudyName,
    results: Results = RESULTS,
    partial: Annotated[
        bool, typer.Option("--partial", help="build the page even before anything was collected")
    ] = False,
) -> None:
    """Write the report page of a study from its tables, figures and other files.

    It is one file that opens from disk, without network.

    Example: python -m benchmark report embedded
    """
    from benchmark.core.errors import RunError
    from benchmark.report.page import write_report

    loaded = load(study, results)
    table = loaded.folder(results) / "runs.csv"
    if not partial and not table.is_file():
        raise RunError(
            f"{table} does not exist, so there is nothing to report; run 'python -m benchmark "
            f"collect {study}' first, or add --partial for a page that says what is missing"
        )
    echo(write_report(loaded, results))


def _write(verb: str, name: str, study: str, results: Path) -> None:
    from benchmark.report import steps
    from benchmark.report.inputs import read_inputs

    loaded = load(study, results)
    folder = loaded.folder(results) / name
    write = steps.write_tables if verb == "tables" else steps.write_figures
    echo(f"{folder}:")
    for artefact in write(read_inputs(loaded, results), folder):
        echo(f"  {artefact.name}: {artefact.summary}")
    if not (folder.parent / "runs.csv").is_file():
        echo(
            f"nothing was collected yet: 'python -m benchmark run {study}' trains the study, "
            f"'python -m benchmark collect {study}' takes the runs there are"
        )


@app.command()
def stats(
    study: StudyName,
    results: Results = RESULTS,
) -> None:
    """Compute intervals, tests, the ablation, ranks and rates: results/STUDY/stats/*.csv.

    Example: python -m benchmark stats embedded
    """
    from benchmark.runs.table import RunTable
    from benchmark.stats.analysis import analyse, write_stats
    from benchmark.stats.budgets import analyse_budgets
    from benchmark.stats.looks import at_level
    from benchmark.stats.queries import Draws

    loaded = load(study, results)
    folder, comparison = loaded.folder(results), at_level(loaded).comparison
    table = RunTable.read(folder)
    draws = Draws.read(table, results, loaded.metrics, 1 - comparison.alpha)
    tables = analyse(table, comparison, loaded.metrics, draws)
    if loaded.references.trials:
        trials = RunTable.read(Path(results) / loaded.references.trials)
        tables |= analyse_budgets(trials, table, loaded.metrics[0], comparison.alpha)
    for path in write_stats(tables, folder / "stats"):
        echo(f"wrote {path}")


@app.command()
def gallery(
    study: StudyName,
    first: Annotated[
        str | None, typer.Option(help="loss on top; default: the study's baseline")
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="loss below it; default: the best of the others")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="default: where the second is best", min=2, max=1_000_000)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="default: the first that both have", min=0, max=MAX_SEED)
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Show what two losses find for chosen queries: results/STUDY/gallery, which the report embeds.

    Example: python -m benchmark gallery embedded --first sup_ap --second roadmap --batch-size 32
    """
    from benchmark.report.gallery import Choice, write_gallery
    from benchmark.report.inputs import read_inputs

    loaded = load(study, results)
    choice = Choice(first, second, batch_size, seed)
    folder = loaded.folder(results)
    made = write_gallery(read_inputs(loaded, results), results, choice)
    if made.reason:
        echo(f"nothing to show: {made.reason}")
    for each in made.pairs:
        pair = each.pair
        echo(
            f"{pair.dataset} {pair.setting} batch size {pair.batch_size} seed {pair.seed}: "
            f"{pair.second.display} against {pair.first.display}\n"
            f"  of {each.recorded} queries {each.improved} improved, {each.worsened} worsened"
        )
    echo(folder / "gallery")
