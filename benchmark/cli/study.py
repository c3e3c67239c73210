"""The verbs around studies: their plan, analysis, looks, specifications and collected runs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from typer import Argument, Exit, Option, Typer

from benchmark.cli import Results, StudyName, app, echo, load
from benchmark.core.errors import BenchmarkError, RunError
from benchmark.core.files import write_text
from benchmark.core.records import RESULTS


@app.command()
def validate(
    studies: list[str] | None = Argument(None, help="names or paths; none means all shipped"),
    write_schemas: bool = Option(
        False, "--write-schemas", help="write workflow/schemas from the code, then validate"
    ),
) -> None:
    """Check study files and the papers' files.

    Prints every problem.

    Example: python -m benchmark validate embedded
    """
    from benchmark.published.fidelity import study_ledger
    from benchmark.published.loading import load_papers
    from benchmark.study import Study, study_names
    from benchmark.study.grid import expand
    from benchmark.study.model import schema_files

    if write_schemas:
        for path, text in schema_files().items():
            write_text(path, text)
            echo(f"wrote {path}")
    printed: set[str] = set()
    names = studies or study_names()
    checks: list[Callable[[], Any]] = [load_papers, *(partial(load, name) for name in names)]
    for check in checks:
        try:
            checked = check()
            if isinstance(checked, Study):
                study_ledger(checked)
                echo(f"{checked.path}: valid, {len(expand(checked))} runs")
        except BenchmarkError as error:
            message = str(error)
            if message not in printed:  # an error of a paper comes again with each study
                echo(f"error: {message}", err=True)
            printed.add(message)
    if printed:
        raise Exit(2)


@app.command()
def plan(
    study: StudyName,
    results: Results = RESULTS,
    sources: bool = Option(
        False, "--sources", help="also say where the values of its recipes are from"
    ),
    power: bool = Option(False, "--power", help="also say which drifts its seeds call"),
    within: str = Option(
        "", metavar="HOURS", help="instead: the runs that decide most within 24h or 2d"
    ),
    true: str = Option(
        "0.8:0,0.2:3", metavar="SHARE:POINTS,...", help="--within: assumed true differences"
    ),
    rate: float = Option(1.0, help="--within: speed of your GPU by that of the table", min=0.001),
    prefer: Literal["", "numbers", "claims"] = Option("", help="--within: count ten times"),
    here: Literal["", "what-is-here"] = Option("", "--with", help="--within: files at hand only"),
    out: Path | None = Option(None, help="--within: study file to write, with the curve beside it"),
) -> None:
    """Show the runs of a study, done and left.

    Also the files that they wait for. With --within, choose the runs that decide most.

    Example: python -m benchmark plan roadmap --sources

    Example: python -m benchmark plan roadmap --within 24h --out weekend.yaml
    """
    if within:
        from benchmark.claims.weekend import choose_runs, read_wish

        hours, world = read_wish(study, within, true, out)
        loaded = load(study, results)
        _tell(choose_runs(loaded, results, hours, world, rate, prefer, bool(here)), hours, out)
        return
    from benchmark.metrics.metric import display_name as metric_label
    from benchmark.runs.plan import plan_text, sources_text
    from benchmark.verdicts.forecast import as_text as forecast_text
    from benchmark.verdicts.forecast import undecidable
    from benchmark.verdicts.matching import StudyGrid

    loaded = load(study, results)
    grid = StudyGrid.of(loaded)
    numbers = undecidable(grid)
    foreseen = ""
    if numbers:
        positions = [f"{table} {data} {metric_label(metric)}" for _, table, data, metric in numbers]
        listed = ", ".join(dict.fromkeys(positions))
        foreseen = f"no number of seeds decides {sum(numbers.values())} printed numbers: {listed}"
    echo(plan_text(loaded, results, foreseen))
    if power and (expected := forecast_text(grid)):
        echo(f"\n{expected}")
    if sources:
        echo(f"\n{sources_text(loaded)}")


def _tell(chosen: Any, hours: float, out: Path | None) -> None:
    """Print what was chosen within these hours, and write it as a study with its curve."""
    from benchmark.report.drawing import save
    from benchmark.report.within_hours import as_text, curve_of, draw_curve, write_runs

    curve = curve_of(chosen)
    echo(as_text(chosen, hours, curve))
    if out:
        why = write_runs(chosen, hours, out)
        load(str(out))
        save(draw_curve(curve, why), out.parent, out.stem, why)
        echo(f"wrote {out}, and the curve beside it\nNext: python -m benchmark run {out}")


@app.command()
def register_analysis(study: StudyName, results: Results = RESULTS) -> None:
    """Record, before the runs, what decides the verdicts.

    Written once; afterwards this says whether it has changed.

    The workflow does this when it starts.

    Example: python -m benchmark register-analysis embedded
    """
    from benchmark.verdicts.matching import StudyGrid
    from benchmark.verdicts.registration import register, registration_state

    grid = StudyGrid.of(load(study, results))
    register(grid, results)
    echo(registration_state(grid, results))


@app.command()
def add_seeds(
    study: StudyName,
    results: Results = RESULTS,
    partial: bool = Option(
        False, "--partial", help="go on although runs of this look have no result"
    ),
) -> None:
    """Add the seeds of the next look that STUDY plans.

    Example: python -m benchmark add-seeds roadmap
    """
    from benchmark.runs.plan import begin_next_look

    echo(begin_next_look(load(study, results), results, partial=partial))
    echo(f"Next: python -m benchmark run {study}")


@app.command()
def specs(study: StudyName, results: Results = RESULTS) -> None:
    """Write the spec.json of every run.

    Results of other specifications are kept in previous/.

    Example: python -m benchmark specs embedded
    """
    from benchmark.runs.folders import write_specs
    from benchmark.study.grid import expand

    runs = expand(load(study, results)).values()
    written = write_specs(runs, results)
    echo(f"{written} of {len(runs)} specifications written below {results / 'runs'}")


@app.command()
def collect(study: StudyName, results: Results = RESULTS) -> None:
    """Write runs.csv and scores.csv from the runs so far.

    Writes provenance.json, too.

    Example: python -m benchmark collect embedded
    """
    from benchmark.runs.collecting import collect as collect_study
    from benchmark.runs.run_table import RUNS_TABLE

    loaded = load(study, results)
    counts = collect_study(loaded, results)
    counted = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    echo(f"{loaded.folder(results) / RUNS_TABLE}: {counted}")


@app.command()
def coverage(results: Results = RESULTS) -> None:
    """Count the published numbers that have a run.

    How many are finished, and why others have none.

    Example: python -m benchmark coverage
    """
    from benchmark.study import study_names
    from benchmark.verdicts import coverage

    studies = [load(name, results) for name in study_names()]
    echo(coverage.as_text(coverage.coverage(studies, results)))


group = Typer(no_args_is_help=True, help="MLflow: import finished runs.")
app.add_typer(group, name="track")


@group.command("import")
def import_(study: StudyName, results: Results = RESULTS) -> None:
    """Bring finished runs into MLflow, each once.

    The exit status is 1 when MLflow cannot be used.

    Example: python -m benchmark track import embedded
    """
    from benchmark.runs.tracking import import_runs
    from benchmark.study.grid import expand

    loaded = load(study, results)
    specs = [run.spec for run in expand(loaded).values()]
    note = f"**{loaded.title}**\n\n{loaded.question}"
    verdicts = loaded.folder(results) / "verdicts.csv"
    try:
        counts, view = import_runs(loaded.name, note, specs, results, verdicts, loaded.metrics)
    except RunError as error:
        advice = f"no result is lost; later: python -m benchmark track import {study}"
        echo(f"error: {error}\n  {advice}", err=True)
        raise Exit(1) from error
    echo(f"MLflow: {', '.join(f'{number} {name}' for name, number in counts.items())}")
    echo(f"compare in MLflow: {view}")
