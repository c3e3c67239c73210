"""The verbs for your own loss (``conform``, ``challenge``), your own score and your own images."""

import os
import re
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typer import Argument, Exit, Option, Typer

from benchmark.cli import (
    Results,
    Verb,
    app,
    echo,
    file_to_write,
    folder_to_write,
    load,
    parse_pairs,
)
from benchmark.cli.gate import verdicts_line
from benchmark.cli.running import Cores
from benchmark.core.environment import PLUGINS, value_of
from benchmark.core.errors import ConfigError, DataError
from benchmark.core.files import guess_csv, write_json
from benchmark.core.interrupts import handling_stop_signals
from benchmark.core.records import RESULTS

if TYPE_CHECKING:
    from benchmark.runs.field import FrozenField

WIDTH = 24  # of a check's name
Verdict = Literal["reproduced", "drifted", "inconclusive", "untested"]


@app.command(cls=Verb)
def conform(
    candidate: str = Argument(help="implementation: MODULE:OBJECT, FILE.py:OBJECT or FILE.py"),
    loss: str | None = Option(None, "--as", metavar="LOSS", help="the loss that it is"),
    step: bool = Option(
        False, "--step", help="it is a step of training, tried with the loss of --as or smooth_ap"
    ),
    option: list[str] | None = Option(
        None, metavar="KEY=VALUE", help="hyperparameter of the loss, may be repeated"
    ),
    json: Path | None = Option(
        None, help="also write the result to this file", callback=file_to_write
    ),
    processes: bool = Option(True, help="also try two processes that train"),
    time_limit: int = Option(600, metavar="SECONDS", help="for all checks", min=1, max=10**6),
) -> None:
    """Check a ranking loss, or a step that trains with one.

    A loss is called with (embeddings, labels) and compared with the published formula; without
    --as with itself, in what every ranking loss must have.

    A step is called with (model, images, labels, loss) and leaves gradients in the model, which
    are compared with those of the whole batch.

    Values, gradients, invariances, unusual batches and behaviour are checked; a failure shows the
    smallest batch that fails. Exit status 0: no check failed; 1: one did; 2: it could not start.

    A check that --time-limit ends has failed, and is the last.

    Example: python -m benchmark conform pytorch_metric_learning.losses:FastAPLoss --as fast_ap

    Example: python -m benchmark conform my_loss.py --as smooth_ap --option tau=0.05

    Example: python -m benchmark conform my_loss.py

    Example: python -m benchmark conform my_step.py --step
    """
    options = parse_pairs("--option", option or [])
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler tells of each start
    from benchmark.losses.conformance import itself, step_of_parts, suite
    from benchmark.losses.conformance.bounded import outcomes_within
    from benchmark.losses.conformance.check_outcomes import in_common
    from benchmark.losses.conformance.formulas import reference
    from benchmark.losses.conformance.processes import SCALING

    kind: Any = step_of_parts if step else suite
    formula: Any
    title = f"{candidate} with" if step else f"{candidate} as"
    if loss is None and not step:
        if options:
            raise ConfigError("--option", ["needs --as LOSS"])
        kind = itself
        formula = itself.Itself(candidate, {}, None)
        echo(f"{candidate} as a loss without a formula")
    else:
        loss = loss or step_of_parts.LOSS
        formula = reference(loss, options)
        listed = ", ".join(f"{name}={value}" for name, value in vars(formula.config).items())
        echo(f"{title} {loss} ({listed})")
    checks = [check for check in kind.CHECKS if processes or check != SCALING]
    found = partial(kind.findings, candidate, formula, processes)
    findings = []
    with closing(outcomes_within(time_limit, candidate, checks, found)) as outcomes:
        for finding in outcomes:
            findings.append(finding)
            note = "" if finding.result == "failed" else finding.note
            echo(f"  {finding.check:{WIDTH}} {finding.result:15} {note}".rstrip())
    failed = [finding for finding in findings if finding.result == "failed"]
    passed = sum(finding.result == "passed" for finding in findings)
    counts = f"{passed} passed"
    if others := len(findings) - passed - len(failed):
        counts += f", {others} not applicable"
    if failed:
        counts = f"failed: {len(failed)} of {len(findings)} checks; {counts}"
    echo(f"\n{counts}")
    made = {finding.check for finding in findings}
    if cause := in_common({finding.check for finding in failed}, made):
        echo(f"in common: {cause}")
    printed: set[str] = set()
    for finding in failed:
        batch, _, problem = finding.note.partition(": ")
        if problem in printed:
            echo(f"\n{finding.check}: {batch}: as above")
            continue
        case = finding.shown_case()
        echo(f"\n{finding.check}: {finding.note}")
        if case in printed:
            case = "  (a batch shown above)"
        if case:
            echo(case)
        printed |= {case, problem} - {""}
    if json is not None:
        checks = [finding.as_json() for finding in findings]
        result = {"candidate": candidate, "reference": loss, "options": options}
        write_json(json, result | {"passed": not failed, "checks": checks})
    if failed:
        raise Exit(1)


@app.command()
def judge(
    words: list[str] | None = Argument(None, hidden=True),
    ours: list[str] | None = Option(
        None, metavar="SCORE", help="score that you got, in percent; again for each run"
    ),
    n: str | None = Option(None, "--n", metavar="RUNS", help="runs behind --ours, if it is a mean"),
    published: str | None = Option(
        None, metavar="SCORE", help="score in the paper, with its printed digits"
    ),
    spread: str | None = Option(
        None, metavar="POINTS", help="standard deviation of one run, if known"
    ),
    published_spread: str | None = Option(
        None, metavar="POINTS", help="standard deviation that the paper prints"
    ),
    published_n: str | None = Option(
        None, metavar="RUNS", help="runs behind the paper's score, if it says so"
    ),
    metric: str = Option("recall_at_1", help="metric, for its margin"),
    margin: str | None = Option(
        None, metavar="POINTS", help="difference without consequence, not the metric's"
    ),
    family: str = Option(
        "1", metavar="TESTS", help="numbers that you judge together, with this one"
    ),
    table: Path | None = Option(
        None, metavar="FILE", help="CSV of many numbers, which are judged together"
    ),
    expect: Verdict | None = Option(None, help="print one line; status 1 if a verdict is another"),
    as_json: bool = Option(False, "--json", help="print JSON instead of text"),
) -> None:
    """Judge a score of yours against a published one.

    Without --spread, the spread between runs is that of several --ours, or the published one.

    A --table has the columns name, metric, ours (or ours_1, ours_2, ... for runs) and published;
    it may have the other options, too, which else hold for all rows.

    Example: python -m benchmark judge --ours 62.4 --n 1 --published 65.9 --spread 0.3

    Example: python -m benchmark judge --ours 70.0 --published 71.4 --published-spread 0.2

    Example: python -m benchmark judge --ours 70.1 --ours 70.6 --ours 70.3 --published 71.4

    Example: python -m benchmark judge --table numbers.csv --spread 0.3 --expect reproduced
    """
    import json

    from benchmark.published.vocabulary import margin_of
    from benchmark.report.judged_number import as_table, as_text
    from benchmark.stats import judgement

    # Numbers are texts, so that all mistakes are told at once and the printed digits are counted.
    options: dict[str, Any] = {
        "n": n,
        "spread": spread,
        "published_spread": published_spread,
        "published_n": published_n,
        "margin": margin,
        "metric": metric,
    }
    answer: Any
    if table is not None:
        from benchmark.stats.judged_table import judge_table, read_cases

        if ours or published is not None or words or family != "1":
            raise ConfigError("judge", ["--table has --ours, --published and --family of its own"])
        answer = judge_table(read_cases(table, options, margin_of))
        text = as_table(answer)
    else:
        case = judgement.question(
            default_margin=margin_of,
            ours=ours or [],
            published=published,
            family=family,
            unexpected=words or [],
            **options,
        )
        answer = judgement.judge(case)
        text = as_text(answer)
    passed = True
    if expect is not None:
        numbers = answer if table else [answer]
        passed = all(number["verdict"] == expect for number in numbers)
        answer = {"expected": expect, "passed": passed, "answer": answer}
        text = verdicts_line(numbers, expect)
    echo(json.dumps(answer, indent=2) if as_json else text)
    if not passed:
        raise Exit(1)


@app.command()
def challenge(
    loss: Path = Argument(help="Python file that registers a loss of its own name"),
    trials: int = Option(4, help="number of trials: one of the field's budgets", min=1, max=99),
    cores: Cores = "all",
    field: Path | None = Option(None, help="folder that 'freeze' wrote", file_okay=False),
    features: Path | None = Option(
        None, help="features of the field's images, if it is one of features", dir_okay=False
    ),
    labels: Path | None = Option(None, help="their labels, if in a second file", dir_okay=False),
    results: Results = RESULTS,
) -> None:
    """Compare a loss of yours with others at equal trials.

    By the rules of the field, whose runs are not repeated. Without --field it is that of
    'reality_check'.

    Features are the field's if they have its digest, or if names, labels and split are equal, the
    rows agree and a loss of the field, run again, scores as it did.

    Example: python -m benchmark challenge my_losses/ramp_ap.py --trials 4

    Example: python -m benchmark challenge ramp_ap.py --field their_field --features mine.npz
    """
    from benchmark.report import answer_of_trials
    from benchmark.report.labels import loss_name
    from benchmark.runs.field import read_field
    from benchmark.stats.budgets import RANK_INTERVAL
    from benchmark.study.manifest import range_problems
    from benchmark.study.model import ROOT
    from benchmark.study.own import FIELD, Challenged, write_challenge

    frozen = read_field(field or ROOT / "results" / "reference" / FIELD)
    against = Challenged(frozen.folder, frozen.manifest)
    # whatever is wrong with the loss is said before anything of the field runs again
    write_challenge(loss, trials, against, results)
    params = params_of_features(frozen, features, labels)
    if params:
        said = features_said(frozen, params, cores, results / "challenges" / loss.stem / "again")
        against = Challenged(frozen.folder, frozen.manifest, params, said)
    study, plugins = write_challenge(loss, trials, against, results)
    os.environ[PLUGINS] = os.pathsep.join(filter(None, [str(plugins), value_of(PLUGINS)]))
    loaded = load(str(study))
    if wrong := [*range_problems(frozen.manifest, loaded)]:
        raise ConfigError(str(frozen.folder), wrong)
    call("run", str(study), "--cores", cores, "--results", str(results))
    final = results / f"{study.stem}-selected"
    ranks = guess_csv(final / "stats" / "budget_ranks.csv")
    tests = guess_csv(final / "stats" / "paired.csv")
    sentences = answer_of_trials.challenge(ranks, tests, loss.stem, loaded.metrics[0], loss_name)
    if against.said:
        sentences.append(f"The data: {against.said}.")
    echo("\n".join([*sentences, answer_of_trials.of_heads(loaded)]))
    echo(f"intervals of ranks: {RANK_INTERVAL}")
    echo(f"page: {final / 'report' / 'index.html'}")


def call(*words: str) -> None:
    """Call a verb as a process of its own; raise Exit with its status if it fails."""
    command = [sys.executable, "-P", "-m", "benchmark", *words]
    # a signal to stop goes to the workflow, which ends in good order
    with handling_stop_signals(lambda number, _: process.send_signal(number)):
        process = subprocess.Popen(command)
        status = process.wait()
    if status < 0:  # ended by a signal
        raise Exit(128 - status)
    if status:
        raise Exit(status)


def params_of_features(
    frozen: "FrozenField", features: Path | None, labels: Path | None
) -> dict[str, Any]:
    """Return the parameters of the features of a challenge; {} if the field is not of features.

    Raise ConfigError for features that are missing, or of no use.
    """
    from benchmark.study.manifest import FEATURES

    if frozen.manifest.features is None:
        if features or labels:
            raise ConfigError(
                "--features", [f"{frozen.folder} is no field of features; leave it out"]
            )
        return {}
    if features is None:
        if FEATURES not in frozen.manifest.files:
            message = f"{frozen.folder} has no features; give yours of the same images"
            raise ConfigError("--features", [message])
        features = frozen.folder / FEATURES
    (choice,) = frozen.manifest.file.entries[0].choices
    params = {**choice.params, "file": str(features.resolve())}
    if labels:
        params["labels"] = str(labels.resolve())
    return params


def features_said(frozen: "FrozenField", given: dict[str, Any], cores: str, folder: Path) -> str:
    """Return in which sense features are a field's; raise ConfigError if they are not.

    A loss of the field runs again below ``folder`` unless the digest is the same.
    """
    from benchmark.core.files import begin_folder
    from benchmark.runs.collecting import collect
    from benchmark.runs.field import have_equal_bits
    from benchmark.runs.run_table import RunTable
    from benchmark.stats.budgets import outside_of_seeds, select
    from benchmark.study.manifest import range_problems
    from benchmark.study.own import Challenged, write_one_loss
    from benchmark.study.trials import write_selected

    manifest = frozen.manifest
    if have_equal_bits(frozen, given):
        return "same features"
    begin_folder(folder)
    baseline = manifest.file.comparison.baseline
    path = write_one_loss(
        Challenged(frozen.folder, manifest, given), baseline, folder / "again.yaml"
    )
    study = load(str(path))
    wrong = [*range_problems(manifest, study)]
    choices = select(study, frozen.trials)
    most = max(choice.trials for choice in choices)
    of_most = [choice for choice in choices if choice.trials == most]
    selected = write_selected(study, of_most, folder)[1]
    if not wrong:
        workers = str(os.cpu_count() if cores == "all" else cores)
        call("fill", str(selected), "--workers", workers, "--results", str(folder))
        again = load(str(selected))
        collect(again, folder)
        table = RunTable.read(again.folder(folder))
        wrong = outside_of_seeds(table, frozen.final, study.metrics[0])
    if wrong:
        raise ConfigError(given["file"], wrong)
    return "equal up to rounding"


def name_of(name: str | None, source: str, what: str) -> str:
    """Return the name of a study: the user's, or one made of its ``source``; raise ConfigError."""
    from benchmark.study import study_names
    from benchmark.study.model import LABEL

    # with the name of a shipped study, the results of two studies would be mixed
    if name is None:
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", source).strip("_.-")[:80] or what
        if name in study_names():
            name += f"_{what}"
    elif name in study_names() or not re.fullmatch(LABEL, name):
        allowed = (
            "letters, digits and _ . + - , a letter or digit first; no study of the repository"
        )
        raise ConfigError("--name", [f"'{name}' (allowed: {allowed})"])
    return name


MAX_SIDE = 10_000  # pixels, as in recipes
# The options of this command for the advice in errors of the dataset.
OPTIONS = {
    "set min_images: 2": "--min-images 2",
    "set same_names: join": "--same-names join",
    "set same_names: apart": "--same-names apart",
    "set categories: true": "--categories",
}
group = Typer(no_args_is_help=True, help="The benchmark on your own images.")
app.add_typer(group, name="folder")


@group.callback()
def folder() -> None:
    """Make ``folder`` a group of verbs; without it the only verb would need no name."""


@group.command()
def init(
    root: Path = Argument(help="directory with a folder of images for each class"),
    name: str | None = Option(None, help="name of the study; default: that of the directory"),
    out: Path = Option(".", help="folder for the study file", callback=folder_to_write),
    categories: bool = Option(False, "--categories", help="the directory has category/class/image"),
    same_names: Literal["join", "apart"] | None = Option(
        None, help="class folders of one name in several places: one class, or one of each"
    ),
    min_images: int = Option(1, help="leave out classes with fewer images", min=1, max=10**9),
    backbone: str | None = Option(
        None,
        help="network: a timm name with its weight tag (resnet50.tv_in1k), or 'scratch'; "
        "default: the packaged EfficientNet-Lite0 where it is installed, else scratch",
    ),
    checkpoint: Path | None = Option(
        None, help="file with the weights of --backbone", exists=True, dir_okay=False
    ),
    image_size: int | None = Option(
        None, help="side of the network's input, pixels", min=32, max=MAX_SIDE
    ),
    seeds: int | None = Option(None, help="number of seeds", min=1, max=1_000),
    gpus: int = Option(0, help="GPUs of a run", min=0, max=1),
    force: bool = Option(False, "--force", help="replace files of the same name"),
) -> None:
    """Write a study of your own images.

    Its settings fit the images; look at it, then run it.

    Example: python -m benchmark folder init /data/flowers
    """
    from benchmark.core.words import rough_duration
    from benchmark.study.own import image_facts, network_of, settings, write_study

    root = root.resolve()
    name = name_of(name, root.name, "images")
    params: dict[str, Any] = {"root": str(root)}
    if categories:
        params["categories"] = True
    if same_names:
        params["same_names"] = same_names
    if min_images > 1:
        params["min_images"] = min_images
    network = network_of(backbone, checkpoint)
    try:
        facts = image_facts(params)
    except DataError as error:
        options = [option for advice, option in OPTIONS.items() if advice in str(error)]
        message = "\nwith this command: ".join([str(error), *options])
        raise DataError(message, error.problems) from error
    chosen = settings(facts, network, gpus=gpus, seeds=seeds, side=image_size)
    chosen |= {"name": name, "params": params, "folder": root.name}
    chosen["reading"] = rough_duration(chosen["reading_seconds"])
    echo(write_study("folder", out, force, facts=facts, network=network, **chosen))
