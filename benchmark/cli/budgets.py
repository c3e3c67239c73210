"""``python -m benchmark select``: from the trials of a study to the study of its final runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command()(select)


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
