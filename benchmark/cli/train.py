"""``python -m benchmark train | fill``: one run, as the workflow calls it; and many short ones."""

import ctypes
import json
import os
import signal
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import (
    MAX_PROCESSES,
    Results,
    StudyName,
    app,
    echo,
    folder_to_write,
    load,
)
from benchmark.core.errors import RunError
from benchmark.core.interrupts import held_back_from_workers, ignore_interrupts
from benchmark.core.records import LOG, RESULTS, SPEC

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PR_SET_PDEATHSIG = 1  # of prctl


@app.command()
def train(
    spec: Annotated[Path, typer.Option(help="spec.json of the run")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="folder of the result; default: beside the spec", callback=folder_to_write
        ),
    ] = None,
    started: Annotated[float | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train and evaluate one run, or continue it.

    Exit status 75: stopped on request, run again.

    Example: python -m benchmark train --spec spec.json
    """
    started = time.monotonic() if started is None else started
    _check(spec)
    _limit_threads(spec)
    from benchmark.training.fork_server import train_forked

    status = train_forked(started)
    if status is None:
        from benchmark.training.interrupt import attempt

        status = attempt(spec, out, started)
    raise typer.Exit(status)


@app.command()
def fill(
    study: StudyName,
    workers: Annotated[int, typer.Option(help="processes", min=1, max=MAX_PROCESSES)] = 2,
    results: Results = RESULTS,
) -> None:
    """Train missing runs, many in each process.

    For runs of seconds, whose jobs cost more than their training; 'run' then does the rest.

    Example: python -m benchmark fill reality_check --workers 2
    """
    from benchmark.core.interrupts import handling_stop_signals
    from benchmark.runs.folders import status_of, write_specs
    from benchmark.study.grid import expand

    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    runs = expand(load(study, results))
    write_specs(runs, results)
    done = ("ok", "diverged")
    left = [run for run in runs.values() if status_of(run, results).status not in done]
    specs = [results / run.spec.folder / SPEC for run in left]
    failed = 0
    spawn = get_context("spawn")  # torch's threads do not survive a fork
    stopping = handling_stop_signals(signal.default_int_handler)
    with (
        stopping,
        ProcessPoolExecutor(workers, spawn, _leave_signals_to_the_parent, (os.getpid(),)) as pool,
    ):
        try:
            with held_back_from_workers():
                errors = pool.map(_train_quietly, specs)  # starts the workers
            for number, error in enumerate(errors, 1):
                failed += bool(error)
                if error:
                    echo(f"failed: {specs[number - 1].parent}: {error}", err=True)
                if number % 20 == 0 or number == len(specs):
                    lost = f", {failed} failed" if failed else ""
                    echo(f"{number - failed} of {len(specs)} runs finished{lost}")
        except BrokenProcessPool:
            words = "a process was killed (is the memory full?); finished runs are kept"
            echo(f"{words}, the same command continues", err=True)
            failed = 1
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            echo("stopped; finished runs are kept, the same command continues", err=True)
            failed = 1
    raise typer.Exit(1 if failed else 0)


def _leave_signals_to_the_parent(parent: int) -> None:
    """Let a worker end its run, which takes seconds, unless the parent itself is killed."""
    ignore_interrupts()
    # by a signal: a thread that waits for it would be there when a run forks its loaders
    with suppress(AttributeError, OSError):  # Linux alone has it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this process asked
        os.kill(os.getpid(), signal.SIGKILL)


def _train_quietly(spec: Path) -> str:
    """Train one run with its words in its own log; return why it failed, or ""."""
    from benchmark.core.errors import BenchmarkError
    from benchmark.training.run import train as train_run

    with open(spec.with_name(LOG), "a", encoding="utf-8") as log, redirect_stdout(log):
        try:
            train_run(spec)
        except BenchmarkError as error:
            print(f"error: {error}", file=log)
            return str(error)
        except Exception as error:  # the other runs go on
            traceback.print_exc(file=log)
            return f"{type(error).__name__}: {error}"
    return ""


def _check(spec: Path) -> None:
    """Raise RunError, with what to do, when there is no specification."""
    if spec.is_dir() and (spec / "spec.json").is_file():
        raise RunError(
            f"--spec {spec} is a run's folder; give the file in it: --spec {spec / 'spec.json'}"
        )
    if not spec.is_file():
        raise RunError(
            f"--spec {spec} is not a file; 'python -m benchmark specs STUDY' writes the "
            "specifications of a study, 'python -m benchmark plan STUDY' says which runs are left"
        )


def _limit_threads(spec: Path) -> None:
    """Set the thread variables before numpy and torch are imported: they are read only once."""
    with suppress(ValueError, KeyError, TypeError):  # reading it properly reports what is wrong
        threads = json.loads(spec.read_bytes())["recipe"]["training"]["threads"]
        for variable in THREAD_VARIABLES:
            os.environ.setdefault(variable, str(threads))
