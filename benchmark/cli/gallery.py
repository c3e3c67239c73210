"""``python -m benchmark gallery``: chosen queries under two losses side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(gallery)


def gallery(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="name of a study in workflow/config, or a path to one"
        ),
    ],
    first: Annotated[
        str | None, typer.Option(help="loss on top; default: the study's baseline")
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="loss below it; default: the best of the others")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="default: where the second is best")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="default: the first that both have")] = None,
    results: Annotated[Path, typer.Option(help="root of the results")] = RESULTS,
) -> None:
    """Show what two losses find for chosen queries: results/STUDY/gallery, which the report embeds.

    Example: python -m benchmark gallery embedded --first sup_ap --second roadmap --batch-size 32
    """
    from benchmark.core.errors import derived_files
    from benchmark.report.gallery import write_gallery
    from benchmark.report.gallery.pairs import Choice
    from benchmark.report.inputs import read_inputs
    from benchmark.study import load_study

    loaded = load_study(study, results)
    choice = Choice(first, second, batch_size, seed)
    with derived_files(loaded.folder(results)):
        made = write_gallery(read_inputs(loaded, results), results, choice)
    if made.reason:
        typer.echo(f"nothing to show: {made.reason}")
    for each in made.pairs:
        pair = each.pair
        typer.echo(
            f"{pair.dataset} {pair.setting} batch size {pair.batch_size} seed {pair.seed}: "
            f"{pair.second.display} against {pair.first.display}\n"
            f"  of {each.recorded} queries {each.improved} improved, {each.worsened} worsened"
        )
    typer.echo(loaded.folder(results) / "gallery")
