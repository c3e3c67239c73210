"""The verbs that make statistics, verdicts, tables, figures and the report page of a study."""

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


def _build(study: str, results: Path, choice: "Choice | None" = None) -> None:
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
