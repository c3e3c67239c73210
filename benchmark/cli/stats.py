"""``python -m benchmark stats``: the statistics of a study from its long table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Option(help="folder of all results", file_okay=False)]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command()(stats)


def stats(
    study: Annotated[str, typer.Argument(help="name or path of the study")],
    results: Results = Path("results"),
) -> None:
    """Compute intervals, paired tests, the ablation and relative gains: results/STUDY/stats/*.csv.

    Example: python -m benchmark stats embedded
    """
    from benchmark.stats import analyse, load_runs, write_stats
    from benchmark.study import load_study

    loaded = load_study(study)
    folder = loaded.folder(results)
    comparison = {
        "baseline": loaded.comparison.baseline,
        "ablation": loaded.comparison.ablation,
        "alpha": loaded.comparison.alpha,
    }
    tables = analyse(load_runs(folder / "runs.csv"), comparison, loaded.metrics)
    for path in write_stats(tables, folder / "stats"):
        typer.echo(f"wrote {path}")
