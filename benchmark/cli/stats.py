"""``python -m benchmark stats``: the statistics of a study from its collected runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Option(help="folder of all results", file_okay=False)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(stats)


def stats(
    study: Annotated[str, typer.Argument(help="name or path of the study")],
    results: Results = Path("results"),
) -> None:
    """Compute intervals, tests, the ablation, ranks and rates: results/STUDY/stats/*.csv.

    Example: python -m benchmark stats embedded
    """
    from benchmark.runs.table import RunTable
    from benchmark.stats.analysis import analyse, write_stats
    from benchmark.stats.budgets.analysis import analyse_budgets
    from benchmark.stats.looks import at_level
    from benchmark.stats.queries import Draws
    from benchmark.study import load_study

    loaded = load_study(study, results)
    folder, comparison = loaded.folder(results), at_level(loaded).comparison
    table = RunTable.read(folder)
    draws = Draws.read(table, results, loaded.metrics, 1 - comparison.alpha)
    tables = analyse(table, comparison, loaded.metrics, draws)
    if loaded.references.trials:
        trials = RunTable.read(Path(results) / loaded.references.trials)
        tables |= analyse_budgets(trials, table, loaded.metrics[0], comparison.alpha)
    for path in write_stats(tables, folder / "stats"):
        typer.echo(f"wrote {path}")
