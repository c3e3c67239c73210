"""``python -m benchmark score``: embeddings from a file under every protocol."""

from __future__ import annotations

import functools
import re
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typer import Argument, Exit, Option

from benchmark.cli import Results, Verb, app, echo, file_to_write, parse_pairs
from benchmark.cli.finished import as_table, kept_files, scores_of
from benchmark.cli.gate import compared, expected_scores, scores_line
from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.files import write_json, write_text
from benchmark.core.records import RESULTS
from benchmark.core.words import first_of

if TYPE_CHECKING:
    from benchmark.metrics.protocols import Record

KEY_HELP = "name in the files of embeddings, query, gallery, labels, cameras, categories or names"


@app.command(cls=Verb)
def score(
    embeddings: Path | None = Argument(
        None, metavar="[FILE]", help="embeddings: .npz, .npy, .safetensors or .pt"
    ),
    labels: Path | None = Option(None, help="their labels, and more: .csv, .tsv, or as above"),
    gallery: Path | None = Option(None, help="embeddings of the gallery"),
    gallery_labels: Path | None = Option(None, help="their labels, and more"),
    ground_truth: Path | None = Option(None, help="gnd_*.pkl of a landmark set"),
    key: list[str] | None = Option(None, metavar="WHAT=NAME", help=KEY_HELP),
    label_sets: bool = Option(
        False, "--label-sets", help="labels are sets: a matrix of 0 and 1, or a|b in a table"
    ),
    rerank: bool = Option(
        False, "--rerank", help="also re-rank by k-reciprocal neighbours of the test set"
    ),
    unlabelled: Literal["leave-out"] | None = Option(None, help="rows without a label"),
    junk: list[str] = Option([], help="label of rows that are left out; may be repeated"),
    distractors: list[str] = Option([], help="label of rows that are no positive and no query"),
    recall_at: list[int] = Option(
        [1, 10],
        help="K, may be repeated",
        min=1,
        max=10**9,
    ),
    map_at: list[int] = Option(
        [],
        help="K of mAP@K and nDCG@K, may be repeated",
        min=1,
        max=10**9,
    ),
    published: str | None = Option(None, metavar="SCORE", help="printed score, in percent"),
    metric: str = Option("recall_at_1", help="its metric, such as R@1, mAP@R or mAP"),
    spread: str | None = Option(
        None, metavar="POINTS", help="standard deviation of one run, for --published and --dataset"
    ),
    dataset: str | None = Option(None, help="compare with all that papers print for it"),
    run: Path | None = Option(
        None, exists=True, file_okay=False, help="in place of FILE: folder of a run that kept some"
    ),
    study: str | None = Option(None, help="in place of FILE: runs of a study that kept some"),
    results: Results = RESULTS,
    expect: list[str] = Option(
        [], metavar="METRIC=SCORE", help="print one line; status 1 if the score is another"
    ),
    within: str | None = Option(
        None, metavar="POINTS", help="allowed difference; default: half of the last digit"
    ),
    protocol: str | None = Option(None, help="that of --expect; default: gallery, or others"),
    explain: bool = Option(False, "--explain", help="also say who uses each protocol and metric"),
    csv: Path | None = Option(None, help="write the scores here", callback=file_to_write),
    json: Path | None = Option(None, help="write everything here", callback=file_to_write),
) -> None:
    """Score embeddings of yours under every protocol.

    What a printed number may be comes first, then facts about the rows and all scores.

    Example: python -m benchmark score embeddings.npz

    Example: python -m benchmark score features.npy --labels labels.csv --dataset vehicleid

    Example: python -m benchmark score test.npz --published 58.7 --metric mAP@R --spread 0.3

    Example: python -m benchmark score --study embedded

    Example: python -m benchmark score test.npz --expect recall_at_1=65.9 --within 0.2
    """
    from shutil import get_terminal_size

    import pandas as pd
    from jinja2 import Environment, PackageLoader

    from benchmark.datasets.io.embeddings import ROLES, SIDES, joined, read_roles
    from benchmark.datasets.landmarks import read_ground_truth
    from benchmark.metrics import score as score_rows
    from benchmark.metrics.given import chosen
    from benchmark.metrics.protocols import family_of, meanings
    from benchmark.stats.queries import FEWEST_CLASSES

    expected = expected_scores(expect, within, protocol)
    asked, noise = asked_numbers(published, metric, dataset, spread)
    if (gallery_labels and not gallery) or (unlabelled and ground_truth):
        wrong = "--gallery-labels needs --gallery; --ground-truth needs all rows, not --unlabelled"
        raise ConfigError("score", [wrong])
    if [embeddings, run, study].count(None) != 2:
        raise ConfigError("score", ["give one of: a FILE, --run, --study"])
    if embeddings is None:
        given_too = (labels, gallery, ground_truth, key, published, dataset, expect, json)
        if any((*given_too, map_at, label_sets, rerank)):
            wrong = "--run and --study take --recall-at and --csv; for the rest name a run's file"
            raise ConfigError("score", [wrong])
        of_runs = scores_of(kept_files(run, study, results), recall_at)
        if csv is not None:
            write_text(csv, of_runs.to_csv(index=False))
        echo(as_table(of_runs))
        return
    names = parse_pairs("--key", key or [], ROLES)
    read = functools.partial(
        read_roles,
        names=names,
        labelled=ground_truth is None,
        leave_out=unlabelled is not None,
    )
    given, unused = read(embeddings, labels)
    if gallery is not None:
        others, more = read(gallery, gallery_labels)
        unused += more
        given = joined(given, others, unused)
    if ground_truth is not None:
        rows = given["embeddings"].shape[0]
        sizes = [len(chosen(side, given[side], rows)) for side in SIDES]
        given["ground_truth"] = read_ground_truth(ground_truth, sizes)
    depths = {"recall_at_k": {*recall_at}, "map_at_k": {*map_at}, "ndcg_at_k": {*map_at}}
    for name in [item.metric for item in asked] + [item.metric for item in expected]:
        k = name.rpartition("_")[2]
        if k.isdecimal():
            depths[meanings("metrics")[family_of(name)]["printed_as"]].add(int(k))
    scores = score_rows(
        **given,
        junk=labels_like(given["labels"], junk),
        distractors=labels_like(given["labels"], distractors),
        recall_at=sorted(depths["recall_at_k"]),
        map_at=sorted(depths["map_at_k"] | depths["ndcg_at_k"]),
        label_sets=label_sets,
        rerank=rerank,
    )
    if unused:
        scores.facts["not used"] = first_of(unused)
    # the last two fields of a record are arrays
    records = [dict(zip(row._fields, row[:-2], strict=False)) for row in scores.records]
    content: dict[str, Any] = {
        "facts": scores.facts,
        "records": records,
        "left_out": scores.left_out,
        "numbers": [nearest(scores.records, number, noise) for number in asked],
    }
    if expected:
        content["expected"] = compared(scores.records, expected, protocol)
    if csv is not None:
        write_text(csv, pd.DataFrame(records).to_csv(index=False))
    if json is not None:
        write_json(json, content)
    if expected:
        echo(scores_line(content["expected"]))
        raise Exit(int(not all(item["met"] for item in content["expected"])))
    templates = Environment(
        loader=PackageLoader("benchmark.cli", ""),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = templates.get_template("score.txt.j2")
    text = template.render(
        content,
        metrics=meanings("metrics"),
        family=family_of,
        explain=explain,
        noise=noise,
        fewest=FEWEST_CLASSES,
        width=get_terminal_size((120, 24)).columns,
    )
    echo(text.rstrip())


def labels_like(labels: Any, texts: list[str]) -> list[Any]:
    """Return labels as the rows have them: texts, or whole numbers where they look so."""
    if labels is None or isinstance(labels[0], str):
        return list(texts)
    return [int(text) if re.fullmatch("-?[0-9]+", text) else text for text in texts]


class AskedScore(NamedTuple):
    """A printed score in points, and half a unit of its last digit."""

    what: str
    metric: str
    points: float
    rounding: float


def asked_numbers(
    published: str | None,
    metric: str,
    dataset: str | None,
    spread: str | None,
) -> tuple[list[AskedScore], float | None]:
    """Return the number of --published, the numbers that papers print for a dataset, --spread."""
    from benchmark.metrics.protocols import meanings, written_metric
    from benchmark.published.loading import load_papers
    from benchmark.published.vocabulary import margin_of
    from benchmark.stats.judgement import question

    asked = []
    noise = None
    problems: list[Problem] = []
    name = written_metric(metric)
    if name is None:
        names = [*meanings("metrics")]
        names += [meaning["shown"] for meaning in meanings("metrics").values()]
        problems.append(Problem(f"--metric: {unknown_name('metric', metric, names)}"))
    try:
        case = question(  # "50" stands for a score of which nothing is asked
            ours=["50"],
            published="50" if published is None else published,
            metric=name or metric,
            margin="1",  # no verdict is asked for
            spread=spread,
            default_margin=margin_of,
        )
    except ConfigError as error:
        problems += error.problems
    else:
        noise = case.spread
        if published is not None:
            asked.append(AskedScore(published, case.metric, case.published, case.rounding))
    if dataset is not None:
        papers = load_papers()
        numbers = [number for number in papers.countable() if number.is_score]
        known = {number.dataset for number in numbers}
        if dataset not in known:
            problems.append(Problem(unknown_name("dataset of the papers", dataset, known)))
        for number in numbers:
            if number.dataset == dataset:
                row = f"{number.row_label} {number.protocol}"
                what = f"{number.text}, {papers.cite(number.source, number.table)}: {row}"
                asked.append(AskedScore(what, number.metric, number.points, number.rounding))
    if problems:
        raise ConfigError("score", problems)
    return asked, noise


def nearest(
    records: list[Record],
    asked: AskedScore,
    noise: float | None,
) -> dict[str, Any]:
    """Return a printed number with the records that may be it, nearest first.

    prints_so    whether ours, rounded to the digits of the print, is the print
    distance     ours - printed, in points
    in_noise     whether two runs with the spread ``noise`` differ by as much; None without it
    low, high    what other classes may give (``interval_over_classes``); None: too few classes
    """
    from benchmark.metrics.protocols import at_depth, family_of, meanings
    from benchmark.stats.judgement import in_noise
    from benchmark.stats.queries import interval_over_classes

    candidates: list[dict[str, Any]] = []
    for record in records:
        printed_as = meanings("metrics")[family_of(record.metric)]["printed_as"]
        printed = at_depth(printed_as, record.metric.rpartition("_")[2])
        if asked.metric in (record.metric, printed):
            points = 100 * record.value
            distance = points - asked.points
            within = noise and in_noise(points, asked.points, noise, asked.rounding)
            ends = interval_over_classes(record.scores, record.classes)
            low, high = (None if isnan(end) else 100 * end for end in ends)
            candidates.append(
                {
                    "protocol": record.protocol,
                    "metric": record.metric,
                    "points": points,
                    # a half prints either way
                    "prints_so": abs(distance) <= asked.rounding + 1e-9,
                    "distance": distance,
                    "in_noise": within,
                    "low": low,
                    "high": high,
                }
            )
    candidates.sort(key=lambda candidate: abs(candidate["distance"]))
    return {**asked._asdict(), "fits": candidates}
