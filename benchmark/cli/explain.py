"""``python -m benchmark explain``: the whole calculation behind one verdict."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS

LISTED = 25  # verdicts that fit and are named


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(explain)


def explain(
    cell: Annotated[
        str,
        typer.Argument(
            metavar="CELL", help="words of a verdict, separated by '/', or a claim's name"
        ),
    ],
    study: Annotated[str, typer.Option("--study", help="name or path of the study")] = "embedded",
    results: Annotated[Path, typer.Option(help="root of the results")] = RESULTS,
    selection: Annotated[
        str, typer.Option(help="epoch: paper, other, last, best or one_best")
    ] = "paper",
) -> None:
    """Print how a verdict came about: raw runs, reference, standard error, both tests and Holm.

    CELL is any words of the verdict's row, in any order: of the printed table or of the run.
    '*' stands for anything.

    Example: python -m benchmark explain glyphs_1k/sup_ap/bs32/map_at_r

    Example: python -m benchmark explain roadmap2021v2/table1/SmoothAP/cub --study roadmap

    Example: python -m benchmark explain sup_ap_beats_smooth_ap
    """
    from benchmark.core.errors import ConfigError
    from benchmark.papers.claims.explain import explain_claim
    from benchmark.papers.claims.study import judge_study_claims
    from benchmark.papers.library import claims_of
    from benchmark.papers.verdicts.explain import explain as explain_verdict
    from benchmark.papers.verdicts.search import find_verdicts, key_of
    from benchmark.papers.verdicts.study import judge_study
    from benchmark.runs.table import RunTable
    from benchmark.study import load_study

    loaded = load_study(study, results)
    table = RunTable.read(loaded.folder(results))
    claims = {claim.name: claim for claim in claims_of(loaded.name)}
    if cell in claims:
        judged = judge_study_claims(loaded, loaded.folder(results))
        typer.echo(explain_claim(*(each[each["claim"] == cell] for each in judged)))
        return
    if near := difflib.get_close_matches(cell, claims, n=3):
        words = f"no such claim; near: {', '.join(near)}; 'claims --list' prints them all"
        raise ConfigError(f"cell {cell}", [words])
    verdicts = judge_study(loaded, table, selection)
    found = find_verdicts(verdicts, cell)
    if len(found) == 1:
        typer.echo(explain_verdict(found[0], verdicts, table))
        return
    typer.echo(f"{len(found)} verdicts fit '{cell}'; add words of the one you mean:")
    for each in found[:LISTED]:
        typer.echo(f"  {key_of(each)}: {each.outcome.verdict}")
    if len(found) > LISTED:
        typer.echo(f"  and {len(found) - LISTED} more")
    raise typer.Exit(2)
