"""The verbs of a whole study: run, finish, select its settings by trials, challenge the field."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import MAX_THREADS, Results, StudyName, app, echo, load
from benchmark.core.errors import ConfigError
from benchmark.core.records import RESULTS


def _cores(text: str) -> str:
    """Return the number as it is: with 0 cores Snakemake waits for ever, and cannot be stopped."""
    if text == "all" or (text.isdecimal() and 1 <= int(text) <= MAX_THREADS):
        return text
    raise typer.BadParameter(f"'{text}' is not a number of cores; allowed: 1 to {MAX_THREADS}, all")


Cores = Annotated[str, typer.Option(help="CPU cores to use, or 'all'", callback=_cores)]


@app.command()
def run(
    study: StudyName = "embedded",
    cores: Cores = "all",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="show the jobs, start none")
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Run a study up to its report, and print the verdicts.

    The exit status is 1 when a run has failed, or a table or figure could not be made.

    Example: python -m benchmark run embedded --cores 2
    """
    loaded = load(study, results)  # problems of the study are printed before Snakemake starts
    # Ctrl-C needs no words until the Snakefile is read
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from snakemake.cli import main

    try:
        main([*snakemake_words(loaded.path, cores, results), *(["--dry-run"] if dry_run else [])])
    except SystemExit as end:
        from benchmark.report.summary import failed
        from benchmark.study.trials import selected_path

        name = selected_path(loaded, results).stem if loaded.trials else loaded.name
        if end.code or dry_run or not failed(results / name):
            raise
        raise typer.Exit(1) from None


def snakemake_words(study: Path, cores: str, results: Path) -> list[str]:
    """Return the arguments with which Snakemake runs a study."""
    from benchmark.study.model import ROOT

    files = ["--snakefile", str(ROOT / "Snakefile")]
    files += ["--profile", str(ROOT / "workflow" / "profiles" / "local")]
    settings = [_setting("study", study), _setting("results", results)]
    return [*files, "--cores", cores, "--config", *settings]


def _setting(key: str, path: Path) -> str:
    """Return a setting for --config, which reads the folder 1.10 as 1.1, but not ./1.10.

    Raise ConfigError for a path that is another one in YAML, as Snakemake reads it.
    """
    import yaml

    text = str(path) if path.is_absolute() else f"./{path}"
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError:
        read = None
    if read != text:
        words = f"the path {text!r} cannot be handed to Snakemake; rename it, without '#' and ':'"
        raise ConfigError(key, [f"{words}, blanks at its ends and line breaks"])
    return f"{key}={text}"


@app.command()
def finish(context: typer.Context, study: StudyName, results: Results = RESULTS) -> None:
    """Build the report from the runs so far.

    Example: python -m benchmark finish embedded
    """
    from benchmark.study import load_study

    path = str(load_study(study).path)
    verbs = context.find_root().command
    for step in ("collect", "build"):
        status = verbs.main([step, path, "--results", str(results)], standalone_mode=False)
        if status:
            echo(
                f"stopped: 'python -m benchmark {step} {study}' ended with status {status}",
                err=True,
            )
            raise typer.Exit(status)


@app.command()
def select(
    study: Annotated[str, typer.Argument(help="name or path of a study with rules")],
    results: Results = RESULTS,
) -> None:
    """Choose the best trial of each loss.

    Writes the study of the final runs.

    Example: python -m benchmark select reality_check
    """
    from benchmark.core.errors import RunError
    from benchmark.runs.collect import collect
    from benchmark.runs.table import RunTable
    from benchmark.stats.budgets import select as choose
    from benchmark.study import load_study
    from benchmark.study.trials import write_selected

    loaded = load_study(study)
    if loaded.trials is None:
        raise RunError(f"study '{loaded.name}' has no trials to choose from: it has no 'rules'")
    collect(loaded, results)
    choices = choose(loaded, RunTable.read(loaded.folder(results)))
    for path in write_selected(loaded, choices, results):
        echo(f"wrote {path}")


@app.command()
def challenge(
    loss: Annotated[Path, typer.Argument(help="Python file that registers a loss of its own name")],
    trials: Annotated[
        int, typer.Option(help="number of trials: one of the field's budgets", min=1, max=99)
    ] = 4,
    cores: Cores = "all",
    field: Annotated[
        Path | None, typer.Option(help="folder of the field's frozen results", file_okay=False)
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Compare a loss of yours with others at equal trials.

    By the rules of 'reality_check', with its frozen results.

    Example: python -m benchmark challenge my_losses/ramp_ap.py --trials 4
    """
    import subprocess

    from benchmark.core.environment import PLUGINS
    from benchmark.core.files import guess_csv
    from benchmark.core.interrupts import handling_stop_signals
    from benchmark.report.answer import standing
    from benchmark.study.model import ROOT
    from benchmark.study.own import FIELD, write_challenge

    field = field or ROOT / "results" / "reference" / FIELD
    study, plugins = write_challenge(loss, trials, field, results)
    os.environ[PLUGINS.name] = os.pathsep.join(filter(None, [str(plugins), PLUGINS.value()]))
    command = [sys.executable, "-m", "benchmark", "run", str(study), "--cores", cores]
    # what stops this command stops the workflow, which ends in its own good order
    with handling_stop_signals(lambda number, _: process.send_signal(number)):
        process = subprocess.Popen([*command, "--results", str(results)])
        status = process.wait()
    if status:
        raise typer.Exit(128 - status if status < 0 else status)
    final = results / f"{study.stem}-selected"
    echo("\n".join(standing(guess_csv(final / "stats" / "budget_ranks.csv"), loss.stem)))
    echo(f"page: {final / 'report' / 'index.html'}")
