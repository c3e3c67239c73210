"""From run folders to one long table: ``results/<study>/runs.csv`` and the provenance of its numbers.

Selections of the table: ``last`` (the headline: after the last epoch), ``best`` (best epoch on the test set,
kept apart), ``curve`` (per epoch) and ``cost``. A run without numbers has one row with an empty metric.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmark.core.files import replacing, write_json
from benchmark.core.records import LONG_COLUMNS, PROVENANCE, STATUSES
from benchmark.runs.status import RunState, state_of
from benchmark.runs.study_provenance import Summary
from benchmark.study import Study
from benchmark.study.grid import Run, expand

RUNS_TABLE = "runs.csv"
COSTS = (
    ("timing", "total_seconds"),
    ("timing", "train_seconds"),
    ("timing", "eval_seconds"),
    ("timing", "images_per_second"),
    ("timing", "loss_ms"),
    ("memory", "peak_rss_mb"),
)


def collect(study: Study, results: Path) -> dict[str, int]:
    """Writes the study's long table and provenance below ``results``; returns the number of runs per status."""
    folder = study.folder(results)
    counts = Counter(dict.fromkeys(STATUSES, 0))
    summary = Summary(study.name)
    with (
        replacing(folder / RUNS_TABLE) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(LONG_COLUMNS)
        for run in expand(study).values():
            state = state_of(run, results)
            counts[state.status] += 1
            summary.add(run, state)
            writer.writerows(rows_of(run, state))
    write_json(folder / PROVENANCE, summary.record(dict(counts)))
    return dict(counts)


def rows_of(run: Run, state: RunState) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of one run, in the order of ``LONG_COLUMNS``."""
    spec, result = run.spec, state.result
    dataset = spec.run_id.split("/", 1)[0]
    loss = (spec.loss["variant"], spec.loss["name"])
    head = (spec.run_id, dataset, spec.setting, *loss, spec.batch_size, spec.seed, state.status)
    tail = (
        run.digest,
        result.get("code_version") or "",
        state.provenance.get("platform") or "",
        state.reason,
    )
    count = 0
    for split, selection, epoch, metric, value in _numbers(result, state.provenance):
        count += selection == "last"
        yield (*head, split, selection, epoch, metric, value, *tail)
    if not count:
        yield (*head, "", "last", "", "", "", *tail)


def _numbers(
    result: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any, str, Any]]:
    """Yields (split, selection, epoch, metric, value) of a result and of its costs."""
    metrics = result.get("metrics", {})
    last = result.get("epochs", "")
    for split, values in metrics.get("last", {}).items():
        for metric, value in values.items():
            yield split, "last", last, metric, value
    for split, values in metrics.get("best", {}).items():
        for metric, best in values.items():
            yield split, "best", best["epoch"], metric, best["value"]
    for record in result.get("curve", ()):
        epoch = record["epoch"]
        for split, values in record.items():
            if split == "loss":
                yield "train", "curve", epoch, "loss", values
            elif isinstance(values, dict):
                for metric, value in values.items():
                    yield split, "curve", epoch, metric, value
    for group, name in COSTS:
        value = provenance.get(group, {}).get(name)
        if value is not None:
            yield "train", "cost", "", name, value
