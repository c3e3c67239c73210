"""``python -m benchmark train``: one run, as the workflow calls it and as a debugger runs it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.errors import RunError

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(train)


def train(
    spec: Annotated[Path, typer.Option(help="spec.json of the run")],
    out: Annotated[
        Path | None, typer.Option(help="folder of the result; default: beside the spec")
    ] = None,
) -> None:
    """Train and evaluate one run, or continue it from its checkpoint.

    Exit status 75: stopped on request, run again.

    Example: python -m benchmark train --spec spec.json
    """
    started = time.monotonic()
    _check(spec)
    _limit_threads(spec)
    from benchmark.training.fork_server.client import train_forked

    status = train_forked(spec, out, started)
    if status is None:
        from benchmark.training.interrupt import attempt

        status = attempt(spec, out, started)
    raise typer.Exit(status)


def _check(spec: Path) -> None:
    """Raise RunError, with what to do, when there is no specification."""
    if spec.is_dir() and (spec / "spec.json").is_file():
        raise RunError(
            f"--spec {spec} is a run's folder; give the file in it: --spec {spec / 'spec.json'}"
        )
    if not spec.is_file():
        raise RunError(
            f"--spec {spec} does not exist; 'python -m benchmark specs STUDY' writes the "
            "specifications of a study, 'python -m benchmark plan STUDY' says which runs are left"
        )


def _limit_threads(spec: Path) -> None:
    """Set the thread variables before numpy and torch are imported: they are read only once."""
    from benchmark.core.plain_json import parse_json

    try:
        threads = parse_json(spec.read_text())["recipe"]["training"]["threads"]
    except (OSError, ValueError, KeyError, TypeError):
        return  # reading the specification properly reports what is wrong with it
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, str(threads))
