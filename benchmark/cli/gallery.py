"""``python -m benchmark gallery``: chosen queries under two losses side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS


def register(app: typer.Typer) -> None:
    """Adds the verb."""
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
    from benchmark.report.gallery import write_gallery
    from benchmark.report.gallery.pairs import Asked
    from benchmark.report.tables.inputs import load_inputs
    from benchmark.study import load_study

    loaded = load_study(study)
    found = write_gallery(
        load_inputs(loaded, results).runs, loaded, results, Asked(first, second, batch_size, seed)
    )
    if found["reason"]:
        typer.echo(f"nothing to show: {found['reason']}")
    for place in found["places"]:
        where = f"{place['dataset']} {place['setting']} batch size {place['batch_size']} seed {place['seed']}"
        typer.echo(f"{where}: {place['second']['display']} against {place['first']['display']}")
        typer.echo(
            f"  of {place['kept']} queries {place['improved']} improved, {place['worsened']} worsened"
        )
    typer.echo(loaded.folder(results) / "gallery")
