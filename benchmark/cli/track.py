"""``python -m benchmark track``: the MLflow store of a study, as the workflow and people use it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli import Results, StudyName, app, echo, load
from benchmark.core.records import RESULTS

if TYPE_CHECKING:
    from benchmark.study import Study

group = typer.Typer(
    no_args_is_help=True, help="MLflow: prepare the store, import finished runs, show the UI."
)
app.add_typer(group, name="track")

Strict = Annotated[bool, typer.Option("--strict", help="fail when MLflow cannot be used")]


@group.command()
def prepare(study: StudyName, results: Results = RESULTS, strict: Strict = False) -> None:
    """Make the MLflow store and the study's experiment, once, before runs start.

    Example: python -m benchmark track prepare embedded
    """
    from benchmark.runs.tracking import store

    loaded = load(study, results)
    with _lenient(
        f"the runs go on without MLflow; later: python -m benchmark track import {study}", strict
    ):
        store.prepare(loaded.name, _note(loaded, results), results)


@group.command("import")
def import_(study: StudyName, results: Results = RESULTS, strict: Strict = False) -> None:
    """Bring every finished run that is missing or incomplete into MLflow, exactly once.

    Example: python -m benchmark track import embedded
    """
    from benchmark.runs.tracking.importer import import_runs
    from benchmark.study.grid import expand

    loaded = load(study, results)
    specs = {name: run.spec for name, run in expand(loaded).items()}
    with _lenient(f"no result is lost; later: python -m benchmark track import {study}", strict):
        counts = import_runs(loaded.name, _note(loaded, results), specs, results)
        echo(f"MLflow: {counts}")


@group.command()
def ui(
    results: Results = RESULTS,
    port: Annotated[int, typer.Option(help="port of the web page", min=1, max=65535)] = 5000,
) -> None:
    """Serve the MLflow UI on this machine's loopback address, until Ctrl-C.

    Example: python -m benchmark track ui --port 5001
    """
    from benchmark.core.environment import TRACKING_URI, is_server
    from benchmark.runs.tracking import store
    from benchmark.runs.tracking.notes import publish_reports

    uri = store.tracking_uri(results)
    if is_server(uri):
        echo(
            f"{TRACKING_URI.name} names a server that has its own UI: {store.without_password(uri)}"
        )
        return
    if store.is_own(uri, results) and not (database := results / store.DATABASE).exists():
        advice = "run a study, or import one with 'python -m benchmark track import STUDY'"
        raise store.TrackingError(f"{database} does not exist; {advice}")
    publish_reports(results)
    echo(f"MLflow UI: http://127.0.0.1:{port} (Ctrl-C ends it)")
    sys.stdout.flush()
    options = {
        "--backend-store-uri": uri,
        "--artifacts-destination": (results / store.ARTIFACTS).resolve().as_uri(),
        "--host": "127.0.0.1",
        "--port": str(port),
        "--workers": "1",
    }
    words = [word for option in options.items() for word in option]
    # small: no telemetry, no consumers of jobs
    small = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [sys.executable, "-m", "mlflow", "server", *words]
    os.execve(command[0], command, {**os.environ, **small})


def _note(study: Study, results: Path) -> str:
    from benchmark.runs.tracking import store
    from benchmark.runs.tracking.notes import experiment_note

    served = store.is_own(store.tracking_uri(results), results)
    return experiment_note(study.name, study.title, study.question, study.metrics, served)


@contextmanager
def _lenient(advice: str, strict: bool) -> Iterator[None]:
    """Turn a TrackingError into a warning with advice: a study must finish without MLflow."""
    from benchmark.runs.tracking.store import TrackingError

    try:
        yield
    except TrackingError as error:
        echo(f"{'error' if strict else 'warning'}: {error}\n  {advice}", err=True)
        if strict:
            raise typer.Exit(1) from error
