"""From run folders to a study's tables, ``runs.csv`` and ``scores.csv``, and its provenance."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_json
from benchmark.core.privacy import public
from benchmark.core.records import PROVENANCE, STATUSES, settings_of
from benchmark.core.results import Result, Scores
from benchmark.runs.status import RunStatus, status_of
from benchmark.runs.study_provenance import Summary
from benchmark.runs.table import RUN_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.grid import Run, expand

ScoreRow = tuple[str, str, str, int, str, float]


def collect(study: Study, results: Path) -> dict[str, int]:
    """Write a study's tables and provenance below ``results``; return its runs by status."""
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


VARIED = ("loss.", "recipe.optimizer.", "recipe.sampler.")


def with_field(table: RunTable, study: Study) -> RunTable:
    """Return the table of a study with the frozen runs of the losses that it does not run.

    Only cells that differ from the study's in the loss alone join: a study of four trials meets the
    first four trials of the field.
    """
    field = RunTable.read(field_folder(study.references.field, TRIALS if study.trials else FINAL))
    here = ["dataset", "setting", "batch_size", "seed"]
    others = field.runs.merge(table.runs[here].drop_duplicates(), on=here)
    others = others[~others["loss"].isin(table.runs["loss"])]
    runs = pd.concat([table.runs, others], ignore_index=True).astype(object)
    runs = runs.where(runs.notna(), None).astype(dict(table.runs.dtypes))
    scores = field.scores[field.scores["run_id"].isin(others["run_id"])]
    return RunTable(runs, pd.concat([table.scores, scores], ignore_index=True))


def freeze_field(trials: RunTable, final: RunTable, metric: str, folder: Path) -> int:
    """Write both tables below ``folder``; return the number of runs.

    Raise ReferenceDataError where a run has no result: nobody would see the hole later.
    """
    for name, table in ((TRIALS, trials), (FINAL, final)):
        holes = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
        if len(holes):
            raise ReferenceDataError(
                f"{len(holes)} runs have no result (first: {holes['run_id'].iloc[0]}), nothing was "
                "frozen; run the study to its end first"
            )
        kept = [str(each) for each in table.runs if str(each).startswith(VARIED)]
        last = (table.scores["selection"] == "last") & (table.scores["metric"] == metric)
        RunTable(table.runs[[*RUN_COLUMNS, *kept]], table.scores[last]).write(folder / name)
    return len(trials.runs) + len(final.runs)
