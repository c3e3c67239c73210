"""``python -m benchmark fidelity``: where recipes and the papers' authors differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(fidelity)


def fidelity(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="name or path of a study")
    ] = None,
    deviations: Annotated[
        bool, typer.Option(help="print only the values that may move a score")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="write the table to this file", dir_okay=False)
    ] = None,
) -> None:
    """Print each value of the recipes beside the paper's and its authors' code; all studies without
    STUDY.

    Example: python -m benchmark fidelity roadmap --deviations
    """
    from benchmark.papers.fidelity import as_table, as_text, study_ledger
    from benchmark.study import load_study, study_names

    rows = {
        (row.recipe, row.item): row
        for name in ([study] if study else study_names())
        for row in study_ledger(load_study(name))
    }
    if not rows:
        typer.echo(f"the recipes of '{study}' follow no paper, so there is nothing to compare")
        return
    shown = [row for row in rows.values() if row.deviates or not deviations]
    if csv:
        as_table(shown).to_csv(csv, index=False)
    typer.echo(str(csv) if csv else as_text(rows.values(), shown))
