"""``python -m benchmark score``: embeddings from a file under every protocol."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typer import Argument, Option

from benchmark.cli import app, echo, file_to_write, parse_pairs
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import write_json, write_text

if TYPE_CHECKING:
    from benchmark.metrics.protocols import Record

KEY_HELP = "name in the files of embeddings, query, gallery, labels, cameras, categories or names"


@app.command()
def score(
    embeddings: Path = Argument(help="embeddings: .npz, .npy, .safetensors or .pt"),
    labels: Path | None = Option(None, help="their labels, and more: .csv, .tsv, or as above"),
    gallery: Path | None = Option(None, help="embeddings of the gallery"),
    gallery_labels: Path | None = Option(None, help="their labels, and more"),
    ground_truth: Path | None = Option(None, help="gnd_*.pkl of a landmark set"),
    key: list[str] | None = Option(None, metavar="WHAT=NAME", help=KEY_HELP),
    unlabelled: Literal["leave-out"] | None = Option(None, help="rows without a label"),
    recall_at: list[int] = Option(
        [1, 10],
        help="K, may be repeated",
        min=1,
        max=10**9,
    ),
    published: str | None = Option(None, metavar="SCORE", help="printed score, in percent"),
    metric: str = Option("recall_at_1", help="its metric"),
    dataset: str | None = Option(None, help="compare with all that papers print for it"),
    csv: Path | None = Option(None, help="write the scores here", callback=file_to_write),
    json: Path | None = Option(None, help="write everything here", callback=file_to_write),
) -> None:
    """Score embeddings of yours under every protocol.

    Facts about the rows come first, then a line for each protocol, and who uses it.

    Example: python -m benchmark score embeddings.npz

    Example: python -m benchmark score features.npy --labels labels.csv --dataset vehicleid

    Example: python -m benchmark score test.npz --published 95.0 --metric recall_at_1
    """
    import pandas as pd
    from jinja2 import Environment, PackageLoader

    from benchmark.datasets.io.embeddings import ROLES, SIDES, joined, read_roles
    from benchmark.datasets.landmarks import read_ground_truth
    from benchmark.metrics import score as score_rows
    from benchmark.metrics.given import chosen
    from benchmark.metrics.metric import k_of
    from benchmark.metrics.protocols import meanings

    asked = asked_numbers(published, metric, dataset)
    if (gallery_labels and not gallery) or (unlabelled and ground_truth):
        wrong = "--gallery-labels needs --gallery; --ground-truth needs all rows, not --unlabelled"
        raise ConfigError("score", [wrong])
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
    depths = set(recall_at) | set(filter(None, [k_of(number.metric) for number in asked]))
    scores = score_rows(**given, recall_at=sorted(depths))
    scores.facts["not used"] = unused[:20]
    # the last two fields of a record are arrays
    records = [dict(zip(row._fields, row[:-2], strict=False)) for row in scores.records]
    content = {
        "facts": scores.facts,
        "records": records,
        "left_out": scores.left_out,
        "numbers": [nearest(scores.records, number) for number in asked],
    }
    if csv is not None:
        write_text(csv, pd.DataFrame(records).to_csv(index=False))
    if json is not None:
        write_json(json, content)
    templates = Environment(
        loader=PackageLoader("benchmark.cli", ""),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = templates.get_template("score.txt.j2")
    echo(template.render(content, metrics=meanings("metrics"), family=family_of))


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
) -> list[AskedScore]:
    """Return the number of --published, and the numbers that papers print for a dataset."""
    from benchmark.metrics.metric import check_metric
    from benchmark.papers.paper import cite, countable_numbers
    from benchmark.stats.judgement import NUMBER, half_of_last_digit

    asked = []
    wrong = check_metric(metric)
    if published is not None:
        if wrong is None and not NUMBER.fullmatch(published):
            wrong = f"--published '{published}' is not a number such as 62.4"
        if wrong is not None:
            raise ConfigError("score", [wrong])
        rounding = half_of_last_digit(published)
        asked.append(AskedScore(published, metric, float(published), rounding))
    if dataset is not None:
        numbers = [number for number in countable_numbers() if number.is_score]
        known = {number.dataset for number in numbers}
        if dataset not in known:
            raise ConfigError("score", [unknown_name("dataset of the papers", dataset, known)])
        for number in numbers:
            if number.dataset == dataset:
                row = f"{number.row_label} {number.protocol}"
                what = f"{number.text}, {cite(number.source, number.table)}: {row}"
                asked.append(AskedScore(what, number.metric, number.points, number.rounding))
    return asked


def family_of(metric: str) -> str:
    """Return a metric's name in ``protocols.yaml``: recall_at_k for recall_at_10."""
    return re.sub(r"_[0-9]+$", "_k", metric)


def nearest(records: list[Record], asked: AskedScore) -> dict[str, Any]:
    """Return a printed number with the records that may be it, nearest first.

    ``fits`` of a record: whether its interval, widened by the rounding, holds the number.
    """
    from benchmark.metrics.protocols import meanings
    from benchmark.stats.queries import drawn_scores

    candidates: list[dict[str, Any]] = []
    for record in records:
        printed_as = meanings("metrics")[family_of(record.metric)]["printed_as"]
        if re.sub("k$", record.metric.rpartition("_")[2], printed_as) == asked.metric:
            drawn = drawn_scores({"": record.scores}, record.classes)[""]
            low, high = (100 * end for end in drawn.interval())
            fits = low - asked.rounding <= asked.points <= high + asked.rounding
            candidates.append(
                {
                    "protocol": record.protocol,
                    "metric": record.metric,
                    "points": 100 * record.value,
                    "low": low,
                    "high": high,
                    "fits": bool(fits),
                }
            )
    candidates.sort(key=lambda candidate: abs(candidate["points"] - asked.points))
    return {**asked._asdict(), "fits": candidates}
