"""The verbs that run: a study to its report, single steps of it, one run, many short runs."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer import Argument, BadParameter, Exit, Option

from benchmark.cli import (
    MAX_PROCESSES,
    MAX_THREADS,
    Results,
    StudyName,
    app,
    echo,
    folder_to_write,
    load,
)
from benchmark.cli.report import build
from benchmark.cli.study import collect
from benchmark.core.environment import available_cores, choose_kernels, take_gpu
from benchmark.core.errors import ConfigError, RunError
from benchmark.core.interrupts import (
    EXIT_INTERRUPTED,
    Interrupted,
    handling_stop_signals,
)
from benchmark.core.records import LOG, PROVENANCE, RESULTS, SPEC, TRACE


def _cores(text: str) -> str:
    """Return the text of a number of cores; raise BadParameter for 0 and other texts.

    With 0 cores Snakemake waits forever and cannot be stopped.
    """
    if text == "all" or (text.isdecimal() and 1 <= int(text) <= MAX_THREADS):
        return text
    raise BadParameter(f"'{text}' is not a number of cores; allowed: 1 to {MAX_THREADS}, all")


Cores = Annotated[str, Option(help="CPU cores to use, or 'all'", callback=_cores)]


@app.command()
def run(
    study: StudyName = "embedded",
    cores: Cores = "all",
    dry_run: bool = Option(False, "--dry-run", "-n", help="show the jobs, start none"),
    results: Results = RESULTS,
) -> None:
    """Run a study up to its report, and print the verdicts.

    The exit status is 1 when a run has failed, or a table or figure could not be made.

    Example: python -m benchmark run embedded --cores 2
    """
    echo(f"reading {study} ...", err=True)
    loaded = load(study, results)  # problems of the study are printed before Snakemake starts
    if not dry_run:
        _print_forecast(loaded, cores, results)
    # until the Snakefile is read, Ctrl-C ends the process without a message
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from snakemake.cli import main

    arguments = snakemake_arguments(loaded.path, cores, results)
    if dry_run:
        arguments.append("--dry-run")
    try:
        main(arguments)
    except SystemExit as end:
        from benchmark.report.summary import failed
        from benchmark.study.trials import selected_path

        name = selected_path(loaded, results).stem if loaded.trials else loaded.name
        if end.code or dry_run or not failed(results / name):
            raise
        raise Exit(1) from None


def _print_forecast(study: Any, cores: str, results: Path) -> None:
    """Print how long a study takes here, from the time of one epoch.

    A study with a result, a study on a GPU and a short study have no forecast.
    """
    from benchmark.core.results import Provenance
    from benchmark.core.words import rough_duration
    from benchmark.runs.folders import states_of

    states = states_of(study, results)
    first = states[0][0]
    training = first.spec.recipe.training
    begun = any(state.result for _, state in states)
    if begun or first.resources.gpus or len(states) * training.epochs < 100:
        return  # the epoch of the forecast must be little beside those of the study
    echo(f"{len(states)} runs; one epoch tells how long they take ...", err=True)
    recipe = replace(first.spec.recipe, training=replace(training, epochs=1))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spec = Path(folder, SPEC)
        replace(first.spec, recipe=recipe).write(spec)
        if _train_apart(spec):
            return
        timing = Provenance.read(spec.with_name(PROVENANCE)).timing
    used_cores = available_cores() if cores == "all" else int(cores)
    runs_at_once = max(1, used_cores / training.threads)
    epoch = timing.train_seconds + timing.eval_seconds
    seconds = len(states) * training.epochs * epoch / runs_at_once
    echo(f"about {rough_duration(seconds)} on this machine", err=True)


def snakemake_arguments(study: Path, cores: str, results: Path) -> list[str]:
    """Return the arguments with which Snakemake runs a study.

    Snakemake reads paths as YAML. Raise ConfigError for a path that YAML changes.
    """
    import yaml

    from benchmark.study.model import ROOT

    settings = []
    for key, path in (("study", study), ("results", results)):
        text = str(path) if path.is_absolute() else f"./{path}"  # the folder 1.10 would become 1.1
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = None
        if value != text:
            message = f"the path {text!r} cannot be handed to Snakemake; rename it, without '#'"
            raise ConfigError(key, [f"{message} and ':', blanks at its ends and line breaks"])
        settings.append(f"{key}={text}")
    files = ["--snakefile", str(ROOT / "workflow/Snakefile")]
    files += ["--profile", str(ROOT / "workflow" / "profiles" / "local")]
    return [*files, "--cores", cores, "--config", *settings]


@app.command()
def finish(study: StudyName, results: Results = RESULTS) -> None:
    """Build the report from the runs so far.

    Example: python -m benchmark finish embedded
    """
    path = str(load(study).path)
    collect(path, results)
    build(path, results)


@app.command()
def select(
    study: str = Argument(help="name or path of a study with rules"), results: Results = RESULTS
) -> None:
    """Choose the best trial of each loss.

    Writes the study of the final runs.

    Example: python -m benchmark select reality_check
    """
    from benchmark.runs.collecting import collect
    from benchmark.runs.run_table import RunTable
    from benchmark.stats.budgets import select as choose
    from benchmark.study.trials import write_selected

    loaded = load(study)
    if loaded.trials is None:
        raise RunError(f"study '{loaded.name}' has no trials to choose from: it has no 'rules'")
    collect(loaded, results)
    choices = choose(loaded, RunTable.read(loaded.folder(results)))
    for path in write_selected(loaded, choices, results):
        echo(f"wrote {path}")


@app.command()
def train(
    spec: Path = Option(..., help="spec.json of the run"),
    out: Path | None = Option(
        None, help="folder of the result; default: beside the spec", callback=folder_to_write
    ),
    trace: int = Option(0, help="steps to record in trace.pt, for 'replay'", min=0, max=10_000),
    started: float | None = Option(None, hidden=True),
    attempt: int = Option(1, hidden=True, min=1, max=1_000),
) -> None:
    """Train and evaluate one run, or continue it.

    Exit status 75: stopped on request, run again.

    Example: python -m benchmark train --spec spec.json
    """
    started = time.monotonic() if started is None else started
    if spec.is_dir() and (spec / SPEC).is_file():
        message = f"--spec {spec} is a run's folder; give the file in it: --spec {spec / SPEC}"
        raise RunError(message)
    if not spec.is_file():
        raise RunError(
            f"--spec {spec} is not a file; 'python -m benchmark specs STUDY' writes the "
            "specifications of a study, 'python -m benchmark plan STUDY' says which runs are left"
        )
    # before the import of numpy and torch, which read these variables only once
    with suppress(ValueError, KeyError, TypeError):  # RunSpec.read reports what is wrong
        _use_threads(json.loads(spec.read_bytes())["recipe"]["training"]["threads"])
    choose_kernels()
    from benchmark.training.fork_server import train_forked

    status = train_forked(started)
    if status is None:
        from benchmark.training.run import train as train_run

        recorder = None
        if trace:
            from benchmark.replay.recorder import Recorder

            folder = out or spec.parent
            folder.mkdir(parents=True, exist_ok=True)
            recorder = partial(Recorder, folder / TRACE, steps=trace)
        take_gpu()
        try:
            train_run(spec, out, started=started, attempt=attempt, recorder=recorder)
            status = 0
        except Interrupted as event:
            echo(event)
            status = EXIT_INTERRUPTED
        except KeyboardInterrupt:
            echo("stopped at once; the same command continues from the last checkpoint")
            status = EXIT_INTERRUPTED
    raise Exit(status)


@app.command()
def fill(
    study: StudyName,
    workers: int = Option(2, help="processes", min=1, max=MAX_PROCESSES),
    results: Results = RESULTS,
) -> None:
    """Train missing runs without Snakemake, several at a time.

    For runs of seconds, whose jobs cost more than their training; then 'run' does the rest.

    Example: python -m benchmark fill reality_check --workers 2
    """
    from benchmark.runs.folders import put_away, states_of, write_specs
    from benchmark.training.fork_server import ForkServer

    states = states_of(load(study, results), results)
    for run, state in states:
        if state.status == "stale":
            put_away(run, results)
    write_specs([run for run, _ in states], results)
    specs = [results / run.spec.folder / SPEC for run, state in states if not state.result]
    server = ForkServer()
    failed = 0
    with handling_stop_signals(signal.default_int_handler), ThreadPoolExecutor(workers) as pool:
        try:
            server.start()
            for number, error in enumerate(pool.map(_train_apart, specs), 1):
                if error:
                    failed += 1
                    echo(f"failed: {specs[number - 1].parent}: {error}", err=True)
                if number % 20 == 0 or number == len(specs):
                    lost = f", {failed} failed" if failed else ""
                    echo(f"{number - failed} of {len(specs)} runs finished{lost}")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            echo("stopped; finished runs are kept, the same command continues", err=True)
            failed = 1
        finally:
            server.stop()
    raise Exit(min(failed, 1))


def _train_apart(spec: Path) -> str:
    """Train one run in a process of its own, whose output goes to the log of the run.

    Return the reason of a failure, "" for none.
    """
    from benchmark.runs.folders import end_of_log, failure_in

    command = [sys.executable, "-P", "-m", "benchmark", "train", "--spec", str(spec)]
    path = spec.with_name(LOG)
    with path.open("ab") as log:
        status = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
    if not status:
        return ""
    return failure_in(end_of_log(path)) or f"it ended with status {status}"


def _use_threads(count: int) -> None:
    """Set the threads of matrix products, whose number changes the last bits, and of OpenMP.

    OMP_NUM_THREADS is kept if it is set.
    """
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(count)))
    os.environ.setdefault("OMP_NUM_THREADS", str(count))
