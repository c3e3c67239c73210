"""``python -m benchmark select | challenge``: settings by trials, and a loss against the field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command()(select)
    app.command()(challenge)


def select(
    study: Annotated[str, typer.Argument(help="name or path of a study with rules")],
    results: Annotated[Path, typer.Option(help="root of the results")] = RESULTS,
) -> None:
    """Choose the best setting of each loss by its trials; write the study of the final runs.

    Example: python -m benchmark select reality_check
    """
    from benchmark.core.errors import RunError
    from benchmark.runs.collect import collect
    from benchmark.runs.table import RunTable
    from benchmark.stats.budgets.chosen import select as choose
    from benchmark.study import load_study
    from benchmark.study.trials.selection import FILE, write_selected

    loaded = load_study(study)
    if loaded.trials is None:
        raise RunError(f"study '{loaded.name}' has no trials to choose from: it has no 'rules'")
    collect(loaded, results)
    folder = loaded.folder(results)
    selection = choose(loaded, RunTable.read(folder))
    selection.write(folder / FILE)
    typer.echo(f"wrote {folder / FILE}")
    typer.echo(f"wrote {write_selected(loaded, selection, results)}")


def challenge(
    loss: Annotated[Path, typer.Argument(help="Python file that registers a loss of its own name")],
    trials: Annotated[int, typer.Option(help="number of trials: one of the field's budgets")] = 4,
    cores: Annotated[str, typer.Option(help="CPU cores to use, or 'all'")] = "all",
    field: Annotated[
        Path | None, typer.Option(help="folder of the field's frozen results", file_okay=False)
    ] = None,
    results: Annotated[Path, typer.Option(help="root of the results")] = RESULTS,
) -> None:
    """Run a loss of yours by the rules of 'reality_check', against the frozen results of others.

    Example: python -m benchmark challenge my_losses/ramp_ap.py --trials 4
    """
    import os
    import subprocess
    import sys

    import pandas as pd

    from benchmark.core.environment import PLUGINS
    from benchmark.core.errors import derived_files
    from benchmark.report.budgets import standing
    from benchmark.study.format import ROOT
    from benchmark.study.trials.challenge import FIELD, copied_loss, write_challenge

    name = loss.stem
    folder = results / "challenges" / name
    plugins = copied_loss(loss, folder)
    os.environ[PLUGINS.name] = os.pathsep.join(filter(None, [str(plugins), PLUGINS.value()]))
    field = field or ROOT / "results" / "reference" / FIELD
    study = write_challenge(name, trials, field, folder)
    command = [sys.executable, "-m", "benchmark", "run", str(study), "--cores", cores]
    done = subprocess.run([*command, "--results", str(results)], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    final = results / f"{study.stem}-selected"
    with derived_files(final):
        told = standing(pd.read_csv(final / "stats" / "budget_ranks.csv"), name)
    typer.echo("\n".join(told))
    typer.echo(f"page: {final / 'report' / 'index.html'}")
