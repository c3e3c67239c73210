"""``python -m benchmark judge``: is a published number reproduced? From the figures alone."""

from typing import Annotated

import typer

from benchmark.cli import app, echo

# Numbers are texts here, so that all mistakes are told at once and the printed digits are counted.
Text = str | None


@app.command()
def judge(
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    ours: Annotated[
        list[str] | None,
        typer.Option(metavar="SCORE", help="score that you got, in percent; again for each run"),
    ] = None,
    n: Annotated[
        Text, typer.Option("--n", metavar="RUNS", help="runs behind --ours, if it is a mean")
    ] = None,
    published: Annotated[
        Text, typer.Option(metavar="SCORE", help="score in the paper, with its printed digits")
    ] = None,
    spread: Annotated[
        Text, typer.Option(metavar="POINTS", help="standard deviation of one run, if known")
    ] = None,
    published_spread: Annotated[
        Text, typer.Option(metavar="POINTS", help="standard deviation that the paper prints")
    ] = None,
    published_n: Annotated[
        Text, typer.Option(metavar="RUNS", help="runs behind the paper's score, if it says so")
    ] = None,
    metric: Annotated[str, typer.Option(help="metric, for its margin")] = "recall_at_1",
    margin: Annotated[
        Text,
        typer.Option(metavar="POINTS", help="difference without consequence, not the metric's"),
    ] = None,
    family: Annotated[
        str, typer.Option(metavar="TESTS", help="numbers that you judge together, with this one")
    ] = "1",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of text")] = False,
) -> None:
    """Judge a score of yours against a published one.

    Without --spread, the spread between runs is that of several --ours, or the published one.

    Example: python -m benchmark judge --ours 62.4 --n 1 --published 65.9 --spread 0.3

    Example: python -m benchmark judge --ours 70.0 --published 71.4 --published-spread 0.2

    Example: python -m benchmark judge --ours 70.1 --ours 70.6 --ours 70.3 --published 71.4
    """
    import json

    from benchmark.papers.vocabulary import margin_of
    from benchmark.stats.judgement import as_text, question, record
    from benchmark.stats.judgement import judge as answer

    asked = question(
        default_margin=margin_of,
        ours=ours or [],
        n=n,
        published=published,
        spread=spread,
        published_spread=published_spread,
        published_n=published_n,
        margin=margin,
        metric=metric,
        family=family,
        unexpected=words or [],
    )
    found = answer(asked)
    echo(json.dumps(record(found), indent=2) if as_json else as_text(found))
