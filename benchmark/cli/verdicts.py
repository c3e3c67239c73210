"""The verbs around references: ``verdicts``, ``check``, ``claims``, ``freeze`` and ``simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="name or path of the study")]
Results = Annotated[Path, typer.Option(help="folder of all results", file_okay=False)]
Selection = Annotated[
    str, typer.Option(help="last: the headline; best: best test epoch, the rule of some papers")
]


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    for verb in (verdicts, check, claims, freeze, simulate):
        app.command()(verb)


def verdicts(
    study: StudyName, results: Results = Path("results"), selection: Selection = "last"
) -> None:
    """Judge every reference number of STUDY: results/STUDY/verdicts.csv (verdicts_best.csv for --selection best).

    Example: python -m benchmark verdicts embedded --selection best
    """
    from benchmark.core.files import write_text
    from benchmark.study import load_study

    loaded = load_study(study)
    table = judged(loaded, results, selection)
    name = "verdicts.csv" if selection == "last" else f"verdicts_{selection}.csv"
    path = loaded.folder(results) / name
    write_text(path, table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
    typer.echo(f"wrote {path}")


def check(
    study: StudyName, results: Results = Path("results"), selection: Selection = "last"
) -> None:
    """Print the verdicts on STUDY; exit status 1 when any number drifted.

    Example: python -m benchmark check embedded
    """
    from benchmark.papers.verdicts import summary_text
    from benchmark.papers.verdicts.vocabulary import DRIFTED
    from benchmark.study import load_study

    table = judged(load_study(study), results, selection)
    typer.echo(summary_text(table))
    if (table["verdict"] == DRIFTED).any():
        raise typer.Exit(1)


def claims(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="name or path of the study")
    ] = None,
    results: Results = Path("results"),
    listing: Annotated[
        bool, typer.Option("--list", help="print the claims themselves, without any study")
    ] = False,
) -> None:
    """Test the papers' sentences on STUDY's runs: results/STUDY/claims.csv and claims_parts.csv.

    Example: python -m benchmark claims sweeps
    """
    from benchmark.core.files import write_text
    from benchmark.papers.claims import judge_claims, list_text, load_claims, summary_text
    from benchmark.papers.verdicts.facts import study_facts
    from benchmark.stats import load_runs
    from benchmark.study import load_study

    if listing:
        typer.echo(list_text(load_claims()))
        return
    if study is None:
        raise typer.BadParameter("give the name of a study, or --list")
    loaded = load_study(study)
    folder = loaded.folder(results)
    verdicts, parts = judge_claims(
        load_runs(folder / "runs.csv"), load_claims(), study_facts(loaded)
    )
    for name, table in (("claims.csv", verdicts), ("claims_parts.csv", parts)):
        write_text(
            folder / name, table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
        )
        typer.echo(f"wrote {folder / name}")
    typer.echo(summary_text(verdicts))


def freeze(
    study: StudyName,
    results: Results = Path("results"),
    out: Annotated[
        Path | None, typer.Option(help="file to write; default: the study's frozen reference")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="accept missing, failed or stale runs")
    ] = False,
) -> None:
    """Freeze the headline scores of STUDY's runs as its reference.

    Example: python -m benchmark freeze embedded --out results/reference/embedded.csv
    """
    from benchmark.papers.references import freeze as freeze_runs
    from benchmark.stats import load_runs
    from benchmark.study import load_study

    loaded = load_study(study)
    target = out or Path(loaded.references.frozen or results / "reference" / f"{loaded.name}.csv")
    runs = load_runs(loaded.folder(results) / "runs.csv")
    count = freeze_runs(runs, target, metrics=list(loaded.metrics), partial=partial)
    typer.echo(f"froze {count} runs in {target}")


def simulate(
    tables: Annotated[int, typer.Option(min=100, help="simulated tables per scenario")] = 2000,
    stress: Annotated[
        bool, typer.Option("--stress", help="break the assumption of equal spreads instead")
    ] = False,
    of_claims: Annotated[
        bool, typer.Option("--claims", help="simulate the tests of claims instead")
    ] = False,
    seed: Annotated[int, typer.Option(help="seed of the simulation")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="SVG file to draw the rates in", dir_okay=False)
    ] = None,
) -> None:
    """Print the error rates and the power of the verdict rule on simulated tables; exit status 1 beyond 5%.

    Example: python -m benchmark simulate --tables 4000 --figure rates.svg
    """
    from benchmark.papers.verdicts.simulate import LIMITED, beyond_limits, worst
    from benchmark.papers.verdicts.simulate import simulate as run

    if figure and (stress or of_claims):
        raise typer.BadParameter("--figure draws the rule itself: leave out --stress and --claims")
    if of_claims:
        _simulate_claims(tables, seed)
        return
    table = run(tables, stress=stress, seed=seed)
    shown = (
        worst(table)
        if not stress
        else table[["ours_n", "reference", "sigma", "ratio", "pooled", *LIMITED]]
    )
    typer.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    if figure:
        from benchmark.core.files import write_text
        from benchmark.papers.verdicts.rates_figure import draw_rates
        from benchmark.report.figures.drawing import to_svg

        write_text(figure, to_svg(draw_rates(shown, tables)))
        typer.echo(f"wrote {figure}")
    over = beyond_limits(table)
    typer.echo(
        f"{len(over)} of {len(table)} scenarios exceed 5% by more than Monte Carlo error ({tables} tables each)"
    )
    if len(over) and not stress:
        raise typer.Exit(1)


def _simulate_claims(tables: int, seed: int) -> None:
    from benchmark.papers.claims.simulate import RATES, beyond_limits, simulate_claims

    table = simulate_claims(tables, seed=seed)
    shown = table[["scenario", "seeds", *RATES]]
    typer.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    over = beyond_limits(table)
    typer.echo(
        f"{len(over)} of {len(table)} rows exceed 5% by more than Monte Carlo error ({tables} claims each)"
    )
    if len(over):
        raise typer.Exit(1)


def judged(study, results: Path, selection: str):
    """Returns the verdicts of a loaded study; missing runs are an error, missing references are not."""
    from benchmark.core.errors import ConfigError, unknown_name
    from benchmark.papers.references import asked_results, load_frozen, load_margins
    from benchmark.papers.verdicts import References, judge
    from benchmark.papers.verdicts.facts import study_facts
    from benchmark.stats import load_runs
    from benchmark.stats.analysis import SELECTIONS

    if selection not in SELECTIONS:
        raise ConfigError("--selection", [unknown_name("selection rule", selection, SELECTIONS)])
    frozen = Path(study.references.frozen) if study.references.frozen else None
    if frozen and not frozen.is_file():
        typer.echo(
            f"no frozen runs at {frozen} yet: 'python -m benchmark freeze {study.name}' writes them",
            err=True,
        )
    references = References(
        published=asked_results(study.references.published),
        frozen=load_frozen(frozen) if frozen and frozen.is_file() else None,
    )
    runs = load_runs(study.folder(results) / "runs.csv")
    return judge(runs, references, load_margins(), selection=selection, facts=study_facts(study))
