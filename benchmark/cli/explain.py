"""``python -m benchmark explain``: the whole calculation behind one verdict."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from benchmark.core.records import RESULTS

LISTED = 25  # verdicts that fit and are named


def register(app: typer.Typer) -> None:
    """Adds the verb."""
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
        str, typer.Option(help="last: the headline; best: best test epoch")
    ] = "last",
) -> None:
    """Print how a verdict came about: raw runs, reference, standard error, both tests, margin, Holm, seeds to decide.

    CELL is any words of the verdict's row, in any order: of the printed table or of the run; '*' stands for anything.

    Example: python -m benchmark explain glyphs_1k/sup_ap/bs32/map_at_r

    Example: python -m benchmark explain roadmap2021v2/table1/SmoothAP/cub/recall_at_1 --study roadmap

    Example: python -m benchmark explain sup_ap_beats_smooth_ap
    """
    from benchmark.cli.verdicts import judged
    from benchmark.core.errors import ConfigError
    from benchmark.papers.claims import judge_claims, load_claims
    from benchmark.papers.claims.explain import explain_claim
    from benchmark.papers.references import load_frozen
    from benchmark.papers.verdicts.explain import explain as explain_verdict
    from benchmark.papers.verdicts.facts import study_facts
    from benchmark.papers.verdicts.search import find_verdicts, key_of
    from benchmark.stats import load_runs
    from benchmark.study import load_study

    loaded = load_study(study)
    runs = load_runs(loaded.folder(results) / "runs.csv")
    claims = {claim.name: claim for claim in load_claims()}
    if cell in claims:
        verdicts, parts = judge_claims(runs, [claims[cell]], study_facts(loaded))
        typer.echo(explain_claim(cell, verdicts, parts))
        return
    if near := difflib.get_close_matches(cell, claims, n=3):
        raise ConfigError(
            f"cell {cell}",
            [f"no such claim; near: {', '.join(near)}; 'claims --list' prints them all"],
        )
    table = judged(loaded, results, selection)
    found = find_verdicts(table, cell)
    if len(found) == 1:
        path = Path(loaded.references.frozen) if loaded.references.frozen else None
        frozen = load_frozen(path) if path and path.is_file() else None
        typer.echo(explain_verdict(found[0], table, runs, frozen))
        return
    typer.echo(f"{len(found)} verdicts fit '{cell}'; add words of the one you mean:")
    for row in found[:LISTED]:
        typer.echo(f"  {key_of(row)}: {row['verdict']}")
    if len(found) > LISTED:
        typer.echo(f"  and {len(found) - LISTED} more")
    raise typer.Exit(2)
