"""The verb that computes recorded training steps again (``replay``)."""

from pathlib import Path

from typer import Argument, Option

from benchmark.cli import app, echo, parse_pairs
from benchmark.cli.data import Params
from benchmark.core.errors import RunError, not_ended_by_others

LEFT = """\
What is left:
  data         python -m benchmark data check NAME
  weights      the score before the first step: docs/faq.md
  evaluation   python -m benchmark score FILE
  seeds        python -m benchmark judge --ours ... --published ..."""

ROW = "  {:22} {:13} {:9} {}"


@app.command()
def replay(
    trace: Path | None = Argument(None, help="trace that the recorder wrote"),
    other: Path | None = Argument(None, help="second trace of the same program"),
    recipe: str | None = Option(None, "--as", help="recipe of a study, or spec.json of a run"),
    loss: str | None = Option(None, help="loss of the program; default: that of spec.json"),
    option: list[str] | None = Option(
        None, metavar="KEY=VALUE", help="hyperparameter of --loss, may be repeated"
    ),
    dataset: str | None = Option(
        None, metavar="NAME", help="dataset whose training images the trace numbers"
    ),
    param: Params = None,
    recorder: bool = Option(False, "--recorder", help="print the file that records traces"),
    as_json: bool = Option(False, "--json", help="print JSON instead of text"),
) -> None:
    """Say where a training program parts from a recipe.

    A trace has the first steps of the program; each part is computed again from the part before it.
    With two traces: the first step and part in which they differ.

    Example: python -m benchmark replay --recorder > recorder.py

    Example: python -m benchmark replay trace.pt --as roadmap_sop_resnet50 --loss smooth_ap
    """
    import json
    from dataclasses import asdict

    if recorder:
        path = Path(__file__).parents[1] / "replay" / "recorder.py"
        echo(path.read_text("utf-8"))
        return
    if trace is None or (other is None) == (recipe is None):
        raise RunError("give a trace, and with it either --as or a second trace")
    from benchmark.replay.comparison import against_recipe, against_trace, expected
    from benchmark.replay.trace import read_trace

    read = [read_trace(path) for path in (trace, other) if path]
    with not_ended_by_others():
        if recipe is None:
            found = against_trace(*read)
        else:
            wanted = expected(recipe, loss, parse_pairs("--option", option or []))
            images = None
            if dataset:
                from benchmark.datasets import load_dataset

                images = load_dataset(dataset, parse_pairs("--param", param or [])).train
            found = list(against_recipe(read[0], *wanted, images))
    first = next((finding for finding in found if finding.outcome == "differs"), None)
    problems = [problem for each in read for problem in each.problems]
    if as_json:
        rows = [asdict(finding) for finding in found]
        answer = {"first": first and first.part, "rows": rows, "problems": problems}
        echo(json.dumps(answer, indent=2))
        return
    if first:
        echo(f"First difference: {first.part}: {first.says}")
    else:
        unjudged = ", ".join(each.part for each in found if each.outcome != "equal")
        echo(f"No part differs (not judged: {unjudged or 'none'})")
        if recipe:
            echo(LEFT)
    echo(ROW.format("part", "outcome", "size", "what was found"))
    for finding in found:
        size = "" if finding.size is None else f"{finding.size:.3g}"
        echo(ROW.format(finding.part, finding.outcome, size, finding.says).rstrip())
    for problem in problems:
        echo(f"  {problem}")
