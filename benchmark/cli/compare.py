"""``python -m benchmark compare``: two runs, or two cells, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command()(compare)


def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="RUN", help="dataset/setting/loss/bs32/seed0, or without the seed"),
    ],
    second: Annotated[str, typer.Argument(metavar="RUN", help="what it is compared with")],
    results: Annotated[Path, typer.Option(help="root of the results")] = RESULTS,
) -> None:
    """Show what two runs, or all seeds of two cells, have different: specification, versions,
    scores, paired test, the queries that changed.

    Example: python -m benchmark compare glyphs_1k/test_resnet/smooth_ap/bs32
    glyphs_1k/test_resnet/sup_ap/bs32
    """
    from benchmark.stats.compare import compare_text

    typer.echo(compare_text(first, second, results))
