"""The verbs that look closer: at a verdict, two runs, recipes beside papers, an analysis."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import MAX_SEED, Results, app, echo, file_to_write, folder_to_write, load
from benchmark.core.errors import ConfigError
from benchmark.core.records import RESULTS

LISTED = 25  # verdicts that fit and are named


@app.command()
def explain(
    cell: Annotated[
        str,
        typer.Argument(
            metavar="CELL", help="words of a verdict, separated by '/', or a claim's name"
        ),
    ],
    study: Annotated[str, typer.Option("--study", help="name or path of the study")] = "embedded",
    results: Results = RESULTS,
    selection: Annotated[
        str, typer.Option(help="epoch: paper, other, last, best or one_best")
    ] = "paper",
) -> None:
    """Print the calculation behind one verdict.

    Raw runs, reference, standard error, both tests and Holm.

    CELL is any words of the verdict's row, in any order: of the printed table or of the run.
    '*' stands for anything.

    Example: python -m benchmark explain glyphs_1k/sup_ap/bs32/map_at_r

    Example: python -m benchmark explain roadmap2021v2/table1/SmoothAP/cub --study roadmap

    Example: python -m benchmark explain sup_ap_beats_smooth_ap
    """
    from benchmark.core.errors import ConfigError
    from benchmark.papers.claim_verdicts import explain_claim, judge_study_claims
    from benchmark.papers.judging import judge_study
    from benchmark.papers.paper import claims_of
    from benchmark.papers.quantities import gap_decreases
    from benchmark.papers.verdicts import explain as explain_verdict
    from benchmark.papers.verdicts import find_verdicts, key_of
    from benchmark.runs.run_table import RunTable

    loaded = load(study, results)
    table = RunTable.read(loaded.folder(results))
    claims = {claim.name: claim for claim in claims_of(loaded.name)}
    if cell in claims:
        judged = judge_study_claims(loaded, table, gap_decreases(loaded.folder(results)))
        echo(explain_claim(*(each[each["claim"] == cell] for each in judged)))
        return
    if near := difflib.get_close_matches(cell, claims, n=3):
        words = f"no such claim; near: {', '.join(near)}; 'claims --list' prints them all"
        raise ConfigError(f"cell {cell}", [words])
    verdicts = judge_study(loaded, table, selection)
    found = find_verdicts(verdicts, cell)
    if len(found) == 1:
        echo(explain_verdict(found[0], verdicts, table))
        return
    echo(f"{len(found)} verdicts fit '{cell}'; add words of the one you mean:")
    for each in found[:LISTED]:
        echo(f"  {key_of(each)}: {each.verdict}")
    if len(found) > LISTED:
        echo(f"  and {len(found) - LISTED} more")
    raise typer.Exit(2)


@app.command()
def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="RUN", help="dataset/setting/loss/bs32/seed0, or without the seed"),
    ],
    second: Annotated[str, typer.Argument(metavar="RUN", help="what it is compared with")],
    results: Results = RESULTS,
) -> None:
    """Compare two runs, or all seeds of two cells.

    Specification, versions, scores, paired test.

    Example: python -m benchmark compare glyphs_1k/test_resnet/smooth_ap/bs32
    glyphs_1k/test_resnet/sup_ap/bs32
    """
    from benchmark.stats.compare import compare_text

    echo(compare_text(first, second, results))


@app.command()
def fidelity(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="name or path of a study")
    ] = None,
    deviations: Annotated[
        bool, typer.Option(help="print only the values that may move a score")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="write the table to this file", callback=file_to_write)
    ] = None,
) -> None:
    """Compare values of recipes with papers and their code.

    All studies without STUDY.

    Example: python -m benchmark fidelity roadmap --deviations
    """
    from benchmark.core.files import write_text
    from benchmark.papers.fidelity import as_table, as_text, study_ledger
    from benchmark.study import load_study, study_names

    rows = {
        (row.recipe, row.item): row
        for name in ([study] if study else study_names())
        for row in study_ledger(load_study(name))
    }
    if not rows:
        echo(f"the recipes of '{study}' follow no paper, so there is nothing to compare")
        return
    shown = [row for row in rows.values() if row.deviates or not deviations]
    if csv:
        write_text(csv, as_table(shown).to_csv(index=False))
    echo(str(csv) if csv else as_text(rows.values(), shown))


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
