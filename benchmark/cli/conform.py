"""``python -m benchmark conform``: an implementation of a ranking loss against its formula."""

import os
from pathlib import Path
from typing import Annotated

import typer

from benchmark.cli import app, echo, file_to_write, parse_pairs

WIDTH = 24  # of a check's name


@app.command()
def conform(
    candidate: Annotated[
        str, typer.Argument(help="implementation: MODULE:OBJECT, FILE.py:OBJECT or FILE.py")
    ],
    loss: Annotated[str, typer.Option("--as", metavar="LOSS", help="the loss that it is")],
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="hyperparameter of the loss, may be repeated"),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="also write the result to this file", callback=file_to_write),
    ] = None,
    processes: Annotated[bool, typer.Option(help="also try two processes that train")] = True,
) -> None:
    """Check an implementation of a ranking loss.

    It is called with (embeddings, labels) and compared with the published formula.

    Values, gradients, invariances, unusual batches and behaviour are checked; a failure shows the
    smallest batch that fails. Exit status 0: no check failed; 1: one did; 2: it could not start.

    Example: python -m benchmark conform pytorch_metric_learning.losses:FastAPLoss --as fast_ap

    Example: python -m benchmark conform my_loss.py --as smooth_ap --option tau=0.05
    """
    options = parse_pairs("--option", option or [])
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler tells of each start
    from benchmark.core.files import write_json
    from benchmark.losses.conformance.candidate import load
    from benchmark.losses.conformance.checks import all_findings
    from benchmark.losses.conformance.reference import reference

    formula = reference(loss, options)
    examined = load(candidate, formula)
    listed = ", ".join(f"{name}={value}" for name, value in vars(formula.config).items())
    echo(f"{candidate} as {loss} ({listed})")
    findings = []
    for finding in all_findings(examined, processes):
        findings.append(finding)
        brief = "" if finding.result == "failed" else finding.note
        echo(f"  {finding.check:{WIDTH}} {finding.result:15} {brief}".rstrip())
    failed = [finding for finding in findings if finding.result == "failed"]
    printed: set[str] = set()
    for finding in failed:
        text = finding.shown_case()
        echo(f"\n{finding.check}: {finding.note}")
        echo("  (a batch shown above)" if text in printed else text)
        printed.add(text)
    echo(f"\n{f'failed: {len(failed)} of {len(findings)} checks' if failed else 'passed'}")
    if json is not None:
        checks = [finding.as_json() for finding in findings]
        result = {"candidate": candidate, "reference": loss, "options": options}
        write_json(json, result | {"passed": not failed, "checks": checks})
    if failed:
        raise typer.Exit(1)
