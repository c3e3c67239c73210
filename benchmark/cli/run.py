"""``python -m benchmark run | finish``: a whole study, and the report of what there is."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS

StudyName = Annotated[str, typer.Argument(help="name or path of a study file")]
Results = Annotated[Path, typer.Option(help="root of the results")]
STEPS = (
    "collect", "stats", "verdicts", "claims", "papers", "gallery", "tables", "plots", "report",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.command()(run)
    app.command()(finish)


def run(
    study: StudyName = "embedded",
    cores: Annotated[str, typer.Option(help="CPU cores to use, or 'all'")] = "all",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="show the jobs, start none")
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Run a study up to its report, then print the verdicts and where the report lies.

    Example: python -m benchmark run embedded --cores 2
    """
    from benchmark.study import load_study

    loaded = load_study(study, results)  # problems of the study are printed before Snakemake starts
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # Ctrl-C needs no words until the Snakefile is read
    from snakemake.cli import main

    main([*snakemake_words(loaded.path, cores, results), *(["--dry-run"] if dry_run else [])])


def snakemake_words(study: Path, cores: str, results: Path) -> list[str]:
    """Return the arguments with which Snakemake runs a study."""
    from benchmark.study.format import ROOT

    files = ["--snakefile", str(ROOT / "Snakefile")]
    files += ["--profile", str(ROOT / "workflow" / "profiles" / "local")]
    settings = [_setting("study", study), _setting("results", results)]
    return [*files, "--cores", cores, "--config", *settings]


def _setting(key: str, path: Path) -> str:
    """Return a setting for --config, which reads the folder 1.10 as 1.1, but not ./1.10."""
    return f"{key}={path if path.is_absolute() else f'./{path}'}"


def finish(context: typer.Context, study: StudyName, results: Results = RESULTS) -> None:
    """Build tables, figures and the report from the runs there are, and name what is missing.

    Example: python -m benchmark finish embedded
    """
    from benchmark.study import load_study

    path = str(load_study(study).path)
    verbs = context.find_root().command
    for step in STEPS:
        status = verbs.main([step, path, "--results", str(results)], standalone_mode=False)
        if status:
            typer.echo(
                f"stopped: 'python -m benchmark {step} {study}' ended with status {status}",
                err=True,
            )
            raise typer.Exit(status)
