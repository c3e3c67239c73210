"""The verbs around references: verdicts, check, claims, papers, freeze and simulate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli import MAX_SEED, Results, StudyName, app, echo, file_to_write, load
from benchmark.core.records import RESULTS

if TYPE_CHECKING:
    import pandas as pd

Selection = Annotated[
    str, typer.Option(help="epoch: paper (each paper's own rule), other, last, best or one_best")
]


@app.command()
def verdicts(study: StudyName, results: Results = RESULTS) -> None:
    """Judge every reference number of STUDY: results/STUDY/verdicts.csv and verdicts_other.csv.

    The second has the other reading of the epoch: see docs/statistics.md.

    Example: python -m benchmark verdicts embedded
    """
    from benchmark.core.made_of import recording
    from benchmark.papers.verdicts.judge import frozen_path, judge_study
    from benchmark.papers.verdicts.records import table_of
    from benchmark.runs.table import RunTable

    loaded = load(study, results)
    folder, frozen = loaded.folder(results), frozen_path(loaded)
    if frozen and not frozen.is_file():
        advice = f"'python -m benchmark freeze {loaded.name}' writes them"
        echo(f"no frozen runs at {frozen} yet: {advice}", err=True)
    with recording(folder, "verdicts"):
        table = RunTable.read(folder)
        for name, selection in (("verdicts.csv", "paper"), ("verdicts_other.csv", "other")):
            _write(folder / name, table_of(judge_study(loaded, table, selection)))


@app.command()
def check(study: StudyName, results: Results = RESULTS, selection: Selection = "paper") -> None:
    """Print the verdicts on STUDY, and what of its analysis has changed since it was registered;
    exit status 1 when any number drifted.

    Example: python -m benchmark check embedded
    """
    from benchmark.papers.registration import registration_state
    from benchmark.papers.verdicts.judge import judge_study
    from benchmark.papers.verdicts.records import table_of
    from benchmark.papers.verdicts.vocabulary import DRIFTED
    from benchmark.papers.verdicts.words import summary_text
    from benchmark.runs.table import RunTable

    loaded = load(study, results)
    table = table_of(judge_study(loaded, RunTable.read(loaded.folder(results)), selection))
    echo(summary_text(table))
    echo(f"\n{registration_state(loaded, results)}")
    if (table["verdict"] == DRIFTED).any():
        raise typer.Exit(1)


@app.command()
def claims(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="name or path of the study")
    ] = None,
    results: Results = RESULTS,
    listing: Annotated[
        bool, typer.Option("--list", help="print the claims themselves, without any study")
    ] = False,
) -> None:
    """Test the papers' sentences on STUDY's runs: results/STUDY/claims.csv and claims_parts.csv.

    Example: python -m benchmark claims sweeps
    """
    from benchmark.core.made_of import recording
    from benchmark.papers.claims.judge import judge_study_claims
    from benchmark.papers.claims.text import list_text, summary_text
    from benchmark.papers.library import all_claims

    if listing:
        echo(list_text(all_claims()))
        return
    if study is None:
        raise typer.BadParameter("give the name of a study, or --list")
    loaded = load(study, results)
    folder = loaded.folder(results)
    with recording(folder, "claims"):
        judged, parts = judge_study_claims(loaded, folder)
        _write(folder / "claims.csv", judged)
        _write(folder / "claims_parts.csv", parts)
    echo(summary_text(judged))


@app.command()
def papers(study: StudyName, results: Results = RESULTS) -> None:
    """Compute what papers' tables and figures show of STUDY: results/STUDY/papers/*.json.

    Example: python -m benchmark papers roadmap
    """
    from benchmark.core.errors import derived_files
    from benchmark.core.made_of import recording
    from benchmark.papers.printed.study import compute_printed

    loaded = load(study, results)
    folder = loaded.folder(results)
    with recording(folder, "papers"), derived_files(folder):
        written = compute_printed(loaded, results).write(folder)
    for path in written:
        echo(f"wrote {path}")


@app.command()
def freeze(
    study: StudyName,
    results: Results = RESULTS,
    out: Annotated[
        Path | None, typer.Option(help="file to write; default: the study's frozen reference")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="accept missing, failed or stale runs")
    ] = False,
) -> None:
    """Freeze the headline scores of STUDY's runs as its reference.

    Of a study whose settings trials chose, trials and final runs are frozen, into a folder.

    Example: python -m benchmark freeze embedded --out results/reference/embedded.csv
    """
    from benchmark.papers.frozen import freeze as freeze_runs
    from benchmark.papers.verdicts.judge import frozen_path
    from benchmark.runs.collect import freeze_field
    from benchmark.runs.table import RunTable

    loaded = load(study, results)
    table = RunTable.read(loaded.folder(results))
    if chosen_by := loaded.references.trials:
        folder = out or results / "reference" / chosen_by
        trials = RunTable.read(results / chosen_by)
        count = freeze_field(trials, table, loaded.metrics[0], folder)
        echo(f"froze {count} trials and final runs below {folder}")
        return
    target = out or frozen_path(loaded) or results / "reference" / f"{loaded.name}.csv"
    count = freeze_runs(table, target, metrics=list(loaded.metrics), partial=partial)
    echo(f"froze {count} runs in {target}")


@app.command()
def simulate(
    tables: Annotated[
        int, typer.Option(min=100, max=100_000, help="simulated tables per scenario")
    ] = 2000,
    stress: Annotated[
        bool, typer.Option("--stress", help="break the assumptions, one after another")
    ] = False,
    looks: Annotated[
        bool, typer.Option("--looks", help="add seeds until a number is decided")
    ] = False,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="other rules: what they get wrong and what they see")
    ] = False,
    of_claims: Annotated[bool, typer.Option("--claims", help="the tests of claims")] = False,
    budgets: Annotated[
        bool, typer.Option("--budgets", help="planted losses, ranked as published and by trials")
    ] = False,
    seed: Annotated[int, typer.Option(help="seed of the simulation", min=0, max=MAX_SEED)] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="SVG file to draw the rates in", callback=file_to_write)
    ] = None,
) -> None:
    """Print error rates and power of the verdict rule on simulated tables; exit status 1 if a goal
    is missed.

    Example: python -m benchmark simulate --tables 4000 --figure rates.svg
    """
    from benchmark.stats.simulations.frontier import frontier_table
    from benchmark.stats.simulations.report import missed_goals, percent, rule_table, world_table
    from benchmark.stats.simulations.sequential import sequence_table

    chosen = [stress, looks, frontier, of_claims, budgets]
    if sum(chosen) > 1 or (figure and any(chosen)):
        raise typer.BadParameter(
            "choose one of --stress, --looks, --frontier, --claims, --budgets, --figure; without "
            "any, the rates of the rule itself are printed"
        )
    if of_claims:
        _simulate_claims(tables, seed)
        return
    if budgets:
        from benchmark.stats.simulations.budgets import rank_worlds

        _print(rank_worlds(tables, seed))
        return
    if any(chosen):
        of_others = world_table if stress else sequence_table if looks else frontier_table
        echo(percent(of_others(tables, seed)))
        return
    table = rule_table(tables, seed)
    echo(percent(table))
    if figure:
        from benchmark.core.files import write_text
        from benchmark.report.drawing.drawing import to_svg
        from benchmark.report.papers.rates import draw_rates

        write_text(figure, to_svg(draw_rates(table, tables)))
        echo(f"wrote {figure}")
    missed = missed_goals(table)
    tail = f"miss a goal by more than Monte Carlo error ({tables} tables each)"
    echo(f"{len(missed)} of {(table['rule'] == 'shared spread').sum()} rows {tail}")
    if len(missed):
        raise typer.Exit(1)


def _simulate_claims(tables: int, seed: int) -> None:
    from benchmark.papers.claims.simulate import RATES, beyond_limits, simulate_claims

    table = simulate_claims(tables, seed=seed)
    _print(table[["scenario", "seeds", *RATES]])
    over = beyond_limits(table)
    tail = f"exceed 5% by more than Monte Carlo error ({tables} claims each)"
    echo(f"{len(over)} of {len(table)} rows {tail}")
    if len(over):
        raise typer.Exit(1)


def _print(table: pd.DataFrame) -> None:
    echo(table.to_string(index=False, float_format=lambda value: f"{value:.4f}"))


def _write(path: Path, table: pd.DataFrame) -> None:
    from benchmark.core.files import write_text

    write_text(path, table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
    echo(f"wrote {path}")
