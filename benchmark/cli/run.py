"""``python -m benchmark run | finish``: a whole study with one command, and the report of what there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS

StudyName = Annotated[str, typer.Argument(help="name or path of a study file")]
Results = Annotated[Path, typer.Option(help="root of the results")]
STEPS = ("collect", "stats", "verdicts", "claims", "gallery", "tables", "plots", "report")


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
    from benchmark.study.format import ROOT

    loaded = load_study(study)  # before Snakemake starts: problems of the study are printed alone
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--profile", str(ROOT / "workflow" / "profiles" / "local"), "--cores", cores]
    command += ["--config", f"study={loaded.path}", f"results={results}"]
    command += ["--dry-run"] if dry_run else ["--quiet", "rules", "reason", "host"]
    done = subprocess.run(command, check=False)
    if not dry_run:
        from benchmark.report.summary import closing_words

        typer.echo(closing_words(loaded, results, finished=done.returncode == 0))
    raise typer.Exit(done.returncode)


def finish(context: typer.Context, study: StudyName, results: Results = RESULTS) -> None:
    """Build tables, figures and the report from the runs there are; the report names what is missing.

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
