"""``python -m benchmark score``: embeddings from a file under every protocol."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from typer import Argument, Option

from benchmark.cli import app, echo, file_to_write, parse_pairs
from benchmark.core.errors import ConfigError, DataError, unknown_name
from benchmark.core.files import write_json, write_text

if TYPE_CHECKING:
    from benchmark.metrics.protocols import Record

OF_ROWS = ("labels", "cameras", "categories", "names")
KEYS = ("embeddings", "query", "gallery", *OF_ROWS)
KEY_HELP = "name in the files of embeddings, query, gallery, labels, cameras, categories or names"


@app.command()
def score(
    embeddings: Path = Argument(help="embeddings: .npz, .npy, .safetensors or .pt"),
    labels: Path | None = Option(None, help="their labels, and more: .csv, .npy, or as above"),
    gallery: Path | None = Option(None, help="embeddings of the gallery"),
    gallery_labels: Path | None = Option(None, help="their labels, and more"),
    ground_truth: Path | None = Option(None, help="gnd_*.pkl of a landmark set"),
    key: list[str] | None = Option(None, metavar="WHAT=NAME", help=KEY_HELP),
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

    from benchmark.datasets.landmarks import read_ground_truth
    from benchmark.metrics import score as score_rows
    from benchmark.metrics.metric import k_of
    from benchmark.metrics.protocols import meanings

    asked = asked_numbers(published, metric, dataset)
    names = parse_pairs("--key", key or [], KEYS)
    labelled = ground_truth is None
    given = read(embeddings, labels, names, labelled)
    if gallery is not None:
        others = read(gallery, gallery_labels, names, labelled)
        given = joined(given, others)
    if ground_truth is not None:
        given["ground_truth"] = read_ground_truth(ground_truth)
    depths = {k for each in asked if (k := k_of(each.metric))}
    found = score_rows(**given, recall_at=sorted({*recall_at, *depths}))
    records = [dict(zip(each._fields, each[:-2], strict=False)) for each in found.records]
    content = {
        "facts": found.facts,
        "records": records,
        "left_out": found.left_out,
        "numbers": [nearest(found.records, each) for each in asked],
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


def read(
    path: Path,
    labels: Path | None,
    names: dict[str, str],
    labelled: bool,
) -> dict[str, Any]:
    """Return what ``score`` takes, out of one file or two."""
    from benchmark.datasets.io.arrays import read_arrays

    arrays = read_arrays(path, "embeddings")
    if labels is not None:
        arrays |= read_arrays(labels, "labels")
    listed = ", ".join(f"{name} {each.dtype} {each.shape}" for name, each in arrays.items())
    for role, name in names.items():
        if role not in KEYS or name not in arrays:
            words = f"--key {role}={name}: {path} has {listed}"
            raise DataError(f"{words}; allowed: one of {', '.join(KEYS)} = a name of the file")
        arrays[role] = arrays[name]
    for role, dimensions, kinds in (("embeddings", 2, "f"), ("labels", 1, "iuU")):
        fitting = [
            name
            for name, each in arrays.items()
            if each.ndim == dimensions and each.dtype.kind in kinds and name not in KEYS
        ]
        if role not in arrays and len(fitting) == 1:
            arrays[role] = arrays[fitting[0]]
        if role not in arrays and (labelled or role == "embeddings"):
            words = f"{path} has {listed}; which are the {role}?"
            raise DataError(f"{words} Say --key {role}=NAME, or give --labels")
    return {role: arrays.get(role) for role in KEYS}


def joined(given: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return queries, then a gallery, as one set."""
    import numpy as np

    from benchmark.metrics.rows import Joined

    rows = Joined(given["embeddings"], others["embeddings"])
    every = np.arange(rows.shape[0])
    count = len(given["embeddings"])
    found = {
        "embeddings": rows,
        "query": every[:count],
        "gallery": every[count:],
    }
    for role in OF_ROWS:
        found[role] = None
        if given[role] is not None and others[role] is not None:
            found[role] = np.concatenate([given[role], others[role]])
    return found


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
    """Return the number that is typed, and those that papers print for a dataset."""
    from benchmark.metrics.metric import check_metric
    from benchmark.papers.paper import cite, countable_numbers
    from benchmark.stats.judgement import NUMBER, half_of_last_digit

    asked = []
    wrong = check_metric(metric)
    if published is not None:
        if wrong is None and not NUMBER.fullmatch(published):
            wrong = f"--published '{published}' is no number such as 62.4"
        if wrong is not None:
            raise ConfigError("score", [wrong])
        rounding = half_of_last_digit(published)
        asked.append(
            AskedScore(
                published,
                metric,
                float(published),
                rounding,
            )
        )
    if dataset is not None:
        numbers = [each for each in countable_numbers() if each.is_score]
        known = {each.dataset for each in numbers}
        if dataset not in known:
            raise ConfigError("score", [unknown_name("dataset of the papers", dataset, known)])
        for each in numbers:
            if each.dataset == dataset:
                place = f"{cite(each.source, each.table)}: {each.row_label} {each.protocol}"
                what = f"{each.text}, {place}"
                asked.append(
                    AskedScore(
                        what,
                        each.metric,
                        each.points,
                        each.rounding,
                    )
                )
    return asked


def family_of(metric: str) -> str:
    """Return a metric's name in ``protocols.yaml``: recall_at_k for recall_at_10."""
    return re.sub(r"_[0-9]+$", "_k", metric)


def nearest(records: list[Record], asked: AskedScore) -> dict[str, Any]:
    """Return a number with the records that may be printed so, nearest first, and which give it."""
    from benchmark.metrics.protocols import meanings
    from benchmark.stats.queries import drawn_scores

    found = []
    for record in records:
        printed_as = meanings("metrics")[family_of(record.metric)]["printed_as"]
        if re.sub("k$", record.metric.rpartition("_")[2], printed_as) == asked.metric:
            drawn = drawn_scores({"": record.scores}, record.classes)[""]
            low, high = (100 * end for end in drawn.interval())
            points = 100 * record.value
            fits = low - asked.rounding <= asked.points <= high + asked.rounding
            fit: dict[str, Any] = {
                "protocol": record.protocol,
                "metric": record.metric,
                "points": points,
            }
            found.append(
                {
                    **fit,
                    "low": low,
                    "high": high,
                    "fits": bool(fits),
                }
            )
    found.sort(key=lambda fit: abs(fit["points"] - asked.points))
    return {**asked._asdict(), "fits": found}
