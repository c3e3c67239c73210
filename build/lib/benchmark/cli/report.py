"""The verbs behind the runs: report and gallery, verdicts, claims, frozen references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli import MAX_SEED, Results, StudyName, app, echo, load
from benchmark.core.records import RESULTS

if TYPE_CHECKING:
    from benchmark.report.gallery import Choice


@app.command()
def build(study: StudyName, results: Results = RESULTS) -> None:
    """Build verdicts, tables, figures and the report.

    What cannot be made is named on the page and in report/failed.txt, and costs none of the rest.

    Example: python -m benchmark build embedded
    """
    _build(study, results)


@app.command()
def gallery(
    study: StudyName,
    first: Annotated[
        str | None, typer.Option(help="loss on top; default: the study's baseline")
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="loss below it; default: the best of the others")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="default: where the second is best", min=2, max=1_000_000)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="default: the first that both have", min=0, max=MAX_SEED)
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Build STUDY with a gallery of two losses.

    Example: python -m benchmark gallery embedded --first sup_ap --second roadmap --batch-size 32
    """
    from benchmark.report.gallery import Choice

    _build(study, results, Choice(first, second, batch_size, seed))


def _build(study: str, results: Path, choice: Choice | None = None) -> None:
    from benchmark.report.build import build
    from benchmark.study.workflow import PAGE

    loaded = load(study, results)
    built = build(loaded, results, choice)
    for kind in ("table", "figure"):
        echo(f"{kind}s:")
        for each in built.artefacts:
            if each.kind == kind:
                made = f"nothing to show: {each.reason}" if each.reason else f"{each.rows} rows"
                echo(f"  {each.name}: {made}")
    echo(f"gallery: {'' if built.gallery.pairs else f'nothing to show: {built.gallery.reason}'}")
    pair = "  {dataset} {setting} batch size {batch_size} seed {seed}: {second[display]} against "
    queries = "    of {recorded} queries {improved} improved, {worsened} worsened"
    for shown in built.gallery.pairs:
        echo(f"{pair}{{first[display]}}".format(**shown["pair"]))
        echo(queries.format(**shown))
    for name, reason in built.failed.items():
        echo(f"not made: {name} ({reason})", err=True)
    echo(loaded.folder(results) / PAGE)


for _gone in ("stats", "papers", "tables", "plots", "report"):  # what one step each made
    app.command(_gone, hidden=True, help="Now a part of 'build'.")(build)


Selection = Annotated[
    str, typer.Option(help="epoch: paper (each paper's own rule), other, last, best or one_best")
]


@app.command()
def verdicts(study: StudyName, results: Results = RESULTS) -> None:
    """Judge every reference number of STUDY.

    Writes results/STUDY/verdicts.csv and verdicts_other.csv.

    The second has the other reading of the epoch: see docs/statistics.md.

    Example: python -m benchmark verdicts embedded
    """
    from benchmark.papers.judging import frozen_path
    from benchmark.report.build import write_verdicts
    from benchmark.runs.run_table import RunTable

    loaded = load(study, results)
    folder, frozen = loaded.folder(results), frozen_path(loaded)
    if frozen and not frozen.is_file():
        advice = f"'python -m benchmark freeze {loaded.name}' writes them"
        echo(f"no frozen runs at {frozen} yet: {advice}", err=True)
    write_verdicts(loaded, RunTable.read(folder), folder)
    echo(f"wrote {folder / 'verdicts.csv'}, {folder / 'verdicts_other.csv'}")


@app.command()
def check(study: StudyName, results: Results = RESULTS, selection: Selection = "paper") -> None:
    """Print the verdicts; exit status 1 if any drifted.

    Also what of its analysis has changed since it was registered.

    Example: python -m benchmark check embedded
    """
    from benchmark.papers.judging import judge_study
    from benchmark.papers.registration import registration_state
    from benchmark.papers.verdicts import DRIFTED, summary_text, table_of
    from benchmark.runs.run_table import RunTable

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
    """Test the papers' sentences on the runs of STUDY.

    Writes results/STUDY/claims.csv and claims_parts.csv.

    Example: python -m benchmark claims sweeps
    """
    from benchmark.papers.claim_verdicts import list_text, summary_text
    from benchmark.papers.paper import claims_of
    from benchmark.report.build import write_claims
    from benchmark.runs.run_table import RunTable

    if listing:
        echo(list_text(claims_of()))
        return
    if study is None:
        raise typer.BadParameter("give the name of a study, or --list")
    loaded = load(study, results)
    folder = loaded.folder(results)
    judged = write_claims(loaded, RunTable.read(folder), folder)
    echo(f"wrote {folder / 'claims.csv'}, {folder / 'claims_parts.csv'}")
    echo(summary_text(judged))


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
    """Freeze the scores of STUDY's runs as its reference.

    Of a study whose settings trials chose, trials and final runs are frozen, into a folder.

    Example: python -m benchmark freeze embedded --out results/reference/embedded.csv
    """
    from benchmark.papers.judging import freeze as freeze_runs
    from benchmark.papers.judging import frozen_path
    from benchmark.runs.collect import freeze_field
    from benchmark.runs.run_table import RunTable

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
