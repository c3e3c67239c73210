"""``python -m benchmark analyse``: the analyses behind the losses."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import MAX_SEED, Results, app, echo, folder_to_write, load
from benchmark.core.errors import ConfigError
from benchmark.core.records import RESULTS

ALL = "all"


@app.command()
def analyse(
    name: Annotated[str | None, typer.Argument(help="name of an analysis, or 'all'")] = None,
    study: Annotated[
        str, typer.Argument(help="study whose first block says what is trained, and how")
    ] = "embedded",
    out: Annotated[
        Path | None,
        typer.Option(
            help="folder to write; default: results/STUDY/analyses/NAME, or NAME-LABEL",
            callback=folder_to_write,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="train on another dataset of the study, with its first block"
        ),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="repeat for several; default: the study's first 3", min=0, max=MAX_SEED),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="tiny data, one epoch: a trial whose numbers mean nothing"),
    ] = (False),
    listing: Annotated[
        bool, typer.Option("--list", help="list the analyses and what they follow")
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Make an analysis: figure, table and judged claims.

    Example: python -m benchmark analyse toy_ranking

    Example: python -m benchmark analyse decomposability_gap roadmap --dataset sop --seed 0
    """
    from benchmark.analyses import ANALYSES

    if listing:
        for entry in ANALYSES:
            echo(f"{entry.name:22}{entry.display} ({'; '.join(entry.facts['places'])})")
        return
    if name is None:
        allowed = ", ".join([*ANALYSES.names(), ALL])
        raise ConfigError("analyse", [f"NAME is missing (allowed: {allowed})"])
    names = ANALYSES.names() if name == ALL else [ANALYSES[name].name]

    from benchmark.analyses.analysis import Context, make

    chosen = load(study, results)
    base = out or chosen.folder(results) / ("analyses-quick" if quick else "analyses")
    for position, each in enumerate(names, start=1):
        folder = base / (each if dataset is None else f"{each}-{dataset}")
        if out and name != ALL:
            folder = out
        echo(f"{each} ({position} of {len(names)})")
        context = Context(chosen, results, seed or (), quick, echo, dataset)
        for sentence in make(each, context, folder).sentences:
            echo(f"  {sentence}")
        echo(f"  written: {folder}")
