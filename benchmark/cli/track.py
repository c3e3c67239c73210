"""``python -m benchmark track``: the runs of a study in MLflow."""

from typing import Annotated

import typer

from benchmark.cli import Results, StudyName, app, echo, load
from benchmark.core.errors import RunError
from benchmark.core.records import RESULTS

group = typer.Typer(no_args_is_help=True, help="MLflow: import finished runs.")
app.add_typer(group, name="track")


@group.command("import")
def import_(
    study: StudyName,
    results: Results = RESULTS,
    strict: Annotated[bool, typer.Option("--strict", help="fail if MLflow cannot be used")] = False,
) -> None:
    """Bring finished runs into MLflow, each once.

    Example: python -m benchmark track import embedded
    """
    from benchmark.runs.tracking import import_runs
    from benchmark.study.grid import expand

    loaded = load(study, results)
    specs = [run.spec for run in expand(loaded).values()]
    files = f"Report: `{loaded.name}/report/index.html` in the folder of the results."
    compared = f"Compare runs by {', '.join(loaded.metrics)}."
    note = "\n\n".join((f"**{loaded.title}**", loaded.question, files, compared))
    verdicts = loaded.folder(results) / "verdicts.csv"
    try:
        counts = import_runs(loaded.name, note, specs, results, verdicts)
    except RunError as error:
        advice = f"no result is lost; later: python -m benchmark track import {study}"
        echo(f"{'error' if strict else 'warning'}: {error}\n  {advice}", err=True)
        raise typer.Exit(int(strict)) from error
    echo(f"MLflow: {', '.join(f'{number} {name}' for name, number in counts.items())}")
