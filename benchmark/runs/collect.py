"""From run folders to a study's tables, ``runs.csv`` and ``scores.csv``, and its provenance."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_json
from benchmark.core.paths import public
from benchmark.core.records import PROVENANCE, SEPARATOR, STATUSES, settings_of
from benchmark.core.results import Provenance, Result, Scores
from benchmark.runs.folders import RunStatus, status_of
from benchmark.runs.table import RUN_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.grid import Run, expand
from benchmark.study.trials import EQUAL

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


class Summary:
    """Counts, run by run: code versions, platforms, packages, hardware and fingerprints of data."""

    def __init__(self, study: str):
        self.study = study
        self.code_versions: Counter[str] = Counter()
        self.platforms: Counter[str] = Counter()
        self.hardware: Counter[str] = Counter()
        self.weights: dict[str, Counter[str]] = defaultdict(Counter)  # settings of the runs
        self.packages: dict[str, Counter[str]] = defaultdict(Counter)
        self.fingerprints: dict[str, Counter[str]] = defaultdict(Counter)
        self.streams: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
        self.starts: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
        self.moved: list[str] = []
        self.updated: list[str] = []
        self.counts: dict[str, Any] = {}
        self.seconds = 0.0

    def add(self, run: Run, status: RunStatus) -> None:
        """Add one run; runs without numbers of the present specification add nothing."""
        result = status.result
        if result is None:
            return
        spec = run.spec
        self.code_versions[result.code_version] += 1
        self.fingerprints[spec.dataset.label][result.dataset.fingerprint] += 1
        self.counts.setdefault(spec.dataset.label, result.dataset.counts)
        pair = (spec.dataset.label, spec.setting.label, spec.batch_size, spec.seed)
        # a diverged run may have seen fewer batches than the others
        self.streams[*pair, result.batch_stream.batches][result.batch_stream.sha256] += 1
        source = status.provenance
        if source is None:
            return
        self.platforms[source.platform] += 1
        self.hardware[json.dumps(_hardware(source), sort_keys=True)] += 1
        weights = source.weights
        self.weights[json.dumps(asdict(weights), sort_keys=True)][spec.setting.label] += 1
        # settings are labels: networks of several kinds are not compared
        kind = (weights.backbone, weights.weights, weights.parameters)
        self.starts[*pair, kind][weights.initial_digest] += 1
        self.seconds += source.timing.total_seconds
        if len(source.machines) > 1:
            self.moved.append(spec.run_id)
        if len(source.package_digests) > 1:
            self.updated.append(spec.run_id)
        for name, version in source.packages.items():
            self.packages[name][version] += 1

    def record(self, statuses: dict[str, int]) -> dict[str, Any]:
        """Return the content of ``results/<study>/provenance.json``."""
        return {
            "study": self.study,
            "runs": statuses,
            "code_versions": dict(self.code_versions),
            "platforms": dict(self.platforms),
            "packages": {name: dict(versions) for name, versions in self.packages.items()},
            "hardware": [
                {**json.loads(text), "runs": count} for text, count in self.hardware.most_common()
            ],
            "weights": [
                {**json.loads(text), "settings": sorted(settings), "runs": settings.total()}
                for text, settings in sorted(
                    self.weights.items(), key=lambda item: -item[1].total()
                )
            ],
            "datasets": {
                label: {"fingerprints": dict(found), "counts": self.counts[label]}
                for label, found in self.fingerprints.items()
            },
            "total_seconds": round(self.seconds, 1),
            "errors": self.errors(),
            "warnings": self.warnings(),
        }

    def errors(self) -> list[str]:
        """Return what makes numbers incomparable: one dataset with two contents."""
        return [
            f"dataset '{label}' had different contents in different runs: {_shares(found)}; "
            "their numbers cannot be compared: settle on one and run the others again"
            for label, found in self.fingerprints.items()
            if len(found) > 1
        ]

    def warnings(self) -> list[str]:
        """Return what a reader should know before comparing runs: pairs that do not match, mixed
        code, platforms or packages, and runs that changed the machine or packages on their way."""
        mixed = [
            f"runs of different {what}: {_shares(found)}"
            for what, found in (
                ("code versions", self.code_versions),
                ("platforms", self.platforms),
            )
            if len(found) > 1
        ]
        mixed += [
            f"runs with different versions of {name}: {_shares(found)}"
            for name, found in sorted(self.packages.items())
            if len(found) > 1
        ]
        return self._unmatched() + mixed + self._moved()

    def _unmatched(self) -> list[str]:
        """Return warnings where compared losses saw other batches or began with other weights."""
        warnings = []
        for what, groups in (
            ("saw different batches or augmentations", self.streams),
            ("started from different weights", self.starts),
        ):
            apart = [pair for pair, found in groups.items() if len(found) > 1]
            if apart:
                label, setting, batch_size, seed, _ = apart[0]
                advice = "train them with one version of the code on one kind of machine"
                if all(f"{SEPARATOR}{EQUAL}" in str(pair[1]) for pair in apart):
                    advice = "trials chose other images of each class for each loss"
                warnings.append(
                    f"in {len(apart)} of {len(groups)} groups of runs with one seed the losses "
                    f"{what} (first: {label}/{setting}, batch size {batch_size}, seed {seed}), so "
                    f"that their differences are not paired: {advice}"
                )
        return warnings

    def _moved(self) -> list[str]:
        """Return warnings on runs continued on another kind of machine, or with other packages."""
        return [
            f"runs that were continued {how}: {len(names)} (first: {names[0]}); they may differ in "
            "their last digits from runs on either"
            for how, names in (
                ("on another kind of machine", self.moved),
                ("with other versions of packages", self.updated),
            )
            if names
        ]


def _hardware(source: Provenance) -> dict[str, Any]:
    """Return the hardware of a run and the vector instructions that it computed with."""
    used = source.numerics.instructions
    return {**asdict(source.hardware), **({"instructions": used} if used else {})}


def _shares(found: Counter[str]) -> str:
    return ", ".join(
        f"{name} ({count} run{'s' if count != 1 else ''})" for name, count in found.most_common()
    )
