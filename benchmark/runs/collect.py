"""From run folders to the tables of a study, ``runs.csv`` and ``scores.csv``, and their
provenance."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.core.files import write_json
from benchmark.core.privacy import public
from benchmark.core.records import PROVENANCE, STATUSES, settings_of
from benchmark.core.results import Result, Scores
from benchmark.runs.field import with_field
from benchmark.runs.status import RunStatus, status_of
from benchmark.runs.study_provenance import Summary
from benchmark.runs.table import RunTable
from benchmark.study import Study
from benchmark.study.grid import Run, expand

ScoreRow = tuple[str, str, str, int, str, float]


def collect(study: Study, results: Path) -> dict[str, int]:
    """Write the study's tables and provenance below ``results``; return the number of runs by
    status."""
    counts = Counter(dict.fromkeys(STATUSES, 0))
    summary = Summary(study.name)
    runs: list[dict[str, Any]] = []
    scores: list[ScoreRow] = []
    for run in expand(study).values():
        status = status_of(run, results)
        counts[status.status] += 1
        summary.add(run, status)
        runs.append(run_row(run, status))
        if status.result is not None:
            scores += score_rows(status.result)
    folder = study.folder(results)
    table = RunTable.from_rows(runs, scores)
    if study.references.field:
        table = with_field(table, study)
    table.write(folder)
    write_json(folder / PROVENANCE, summary.record(dict(counts)))
    return dict(counts)


def run_row(run: Run, status: RunStatus) -> dict[str, Any]:
    """Return the row of one run in ``runs.csv``."""
    spec, provenance = run.spec, status.provenance
    return {
        "run_id": spec.run_id,
        "dataset": spec.dataset.label,
        "setting": spec.setting.label,
        "backbone": spec.setting.backbone,
        "options": spec.setting.options,
        "loss": spec.loss.label,
        "base_loss": spec.loss.name,
        "batch_size": spec.batch_size,
        "seed": spec.seed,
        "status": status.status,
        "reason": public(status.reason),
        **(dataclasses.asdict(provenance.costs) if provenance else {}),
        "spec_digest": run.digest,
        "code_version": status.code_version,
        "platform": provenance.platform if provenance else "",
        **public(settings_of(spec)),
    }


def score_rows(result: Result) -> Iterator[ScoreRow]:
    """Yield the rows of one run in ``scores.csv``."""
    run_id = result.run_id

    def rows(selection: str, epoch: int, scores: Scores) -> Iterator[ScoreRow]:
        for split, metrics in scores.items():
            for metric, value in metrics.items():
                yield run_id, split, selection, epoch, metric, value

    yield from rows("last", result.epochs, result.metrics.last)
    for split, metrics in result.metrics.best.items():
        for metric, best in metrics.items():
            yield run_id, split, "best", best.epoch, metric, best.value
    for point in result.curve:
        if point.loss is not None:
            yield run_id, "train", "curve", point.epoch, "loss", point.loss
        yield from rows("curve", point.epoch, point.scores)
