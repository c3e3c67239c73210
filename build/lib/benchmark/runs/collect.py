"""From run folders to a study's tables, ``runs.csv`` and ``scores.csv``, and its provenance."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_json
from benchmark.core.paths import public
from benchmark.core.records import PROVENANCE, SEPARATOR, STATUSES, RunSpec, settings_of
from benchmark.core.results import Provenance, Result, Scores
from benchmark.runs.folders import RunStatus, status_of
from benchmark.runs.run_table import RUN_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.grid import Run, expand
from benchmark.study.trials import EQUAL


def collect(study: Study, results: Path) -> dict[str, int]:
    """Write a study's tables and provenance below ``results``; return its runs by status."""
    found = [(run, status_of(run, results)) for run in expand(study).values()]
    counts = dict.fromkeys(STATUSES, 0) | Counter(status.status for _, status in found)
    table = RunTable.from_rows(
        [run_row(run, status) for run, status in found],
        [row for _, status in found if status.result for row in score_rows(status.result)],
    )
    folder = study.folder(results)
    (with_field(table, study) if study.references.field else table).write(folder)
    write_json(folder / PROVENANCE, {**provenance_of(study.name, found), "runs": counts})
    return counts


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


def score_rows(result: Result) -> Iterator[tuple[str, str, str, int, str, float]]:
    """Yield the rows of one run in ``scores.csv``."""
    places: list[tuple[str, int, Scores]] = [("last", result.epochs, result.metrics.last)]
    for split, metrics in result.metrics.best.items():
        places += [("best", at.epoch, {split: {name: at.value}}) for name, at in metrics.items()]
    for point in result.curve:
        if point.loss is not None:
            places.append(("curve", point.epoch, {"train": {"loss": point.loss}}))
        places.append(("curve", point.epoch, point.scores))
    for selection, epoch, scores in places:
        for split, values in scores.items():
            for metric, value in values.items():
                yield result.run_id, split, selection, epoch, metric, value


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


def _grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, Counter[str]]:
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for key, value in pairs:
        found[key][value] += 1
    return found


def provenance_of(study: str, found: Iterable[tuple[Run, RunStatus]]) -> dict[str, Any]:
    """Return the content of ``results/<study>/provenance.json``, but for the runs by status.

    Where the numbers come from, over all runs, and what deserves a warning. Runs without numbers of
    the present specification say nothing.
    """
    done = [(run.spec, status.result, status.provenance) for run, status in found if status.result]
    known = [(spec, source) for spec, _, source in done if source]
    codes = Counter(result.code_version for _, result, _ in done)
    platforms = Counter(source.platform for _, source in known)
    packages = _grouped(item for _, source in known for item in source.packages.items())
    hardware: Counter[str] = Counter()
    for _, source in known:
        used = {"instructions": source.numerics.instructions}
        machine = dataclasses.asdict(source.hardware) | (used if all(used.values()) else {})
        hardware[json.dumps(machine, sort_keys=True)] += 1
    weights = _grouped(
        (json.dumps(dataclasses.asdict(source.weights), sort_keys=True), spec.setting.label)
        for spec, source in known
    )
    data = [(spec.dataset.label, result.dataset) for spec, result, _ in done]
    contents = _grouped((label, of.fingerprint) for label, of in data)
    images = {label: of.counts for label, of in reversed(data)}
    mixed = {"of different code versions": codes, "of different platforms": platforms}
    mixed |= {f"with different versions of {name}": packages[name] for name in sorted(packages)}
    moved = [spec.run_id for spec, source in known if len(source.machines) > 1]
    updated = [spec.run_id for spec, source in known if len(source.package_digests) > 1]
    warnings = list(_unmatched(done))
    warnings += [f"runs {how}: {_shares(of)}" for how, of in mixed.items() if len(of) > 1]
    warnings += [
        f"runs that were continued {how}: {len(names)} (first: {names[0]}); they may differ in "
        "their last digits from runs on either"
        for how, names in (
            ("on another kind of machine", moved),
            ("with other versions of packages", updated),
        )
        if names
    ]
    return {
        "study": study,
        "code_versions": dict(codes),
        "platforms": dict(platforms),
        "packages": {name: dict(versions) for name, versions in packages.items()},
        "hardware": [{**json.loads(text), "runs": n} for text, n in hardware.most_common()],
        "weights": [
            {**json.loads(text), "settings": sorted(settings), "runs": settings.total()}
            for text, settings in sorted(weights.items(), key=lambda item: -item[1].total())
        ],
        "datasets": {
            label: {"fingerprints": dict(found), "counts": images[label]}
            for label, found in contents.items()
        },
        "total_seconds": round(sum(source.timing.total_seconds for _, source in known), 1),
        # what makes numbers incomparable
        "errors": [
            f"dataset '{label}' had different contents in different runs: {_shares(found)}; "
            "their numbers cannot be compared: settle on one and run the others again"
            for label, found in contents.items()
            if len(found) > 1
        ],
        "warnings": warnings,
    }


def _unmatched(done: list[tuple[RunSpec, Result, Provenance | None]]) -> Iterator[str]:
    """Yield warnings where compared losses saw other batches or began with other weights."""
    streams, starts = [], []
    for spec, result, source in done:
        pair = (spec.dataset.label, spec.setting.label, spec.batch_size, spec.seed)
        # a diverged run may have seen fewer batches than the others
        streams.append(((*pair, result.batch_stream.batches), result.batch_stream.sha256))
        if source:  # settings are labels: networks of several kinds are not compared
            of = source.weights
            kind = (of.backbone, of.weights, of.parameters)
            starts.append(((*pair, kind), of.initial_digest))
    for what, groups in (
        ("saw different batches or augmentations", _grouped(streams)),
        ("started from different weights", _grouped(starts)),
    ):
        apart = [pair for pair, found in groups.items() if len(found) > 1]
        if apart:
            label, setting, batch_size, seed, _ = apart[0]
            advice = "train them with one version of the code on one kind of machine"
            if all(f"{SEPARATOR}{EQUAL}" in str(pair[1]) for pair in apart):
                advice = "trials chose other images of each class for each loss"
            yield (
                f"in {len(apart)} of {len(groups)} groups of runs with one seed the losses "
                f"{what} (first: {label}/{setting}, batch size {batch_size}, seed {seed}), so "
                f"that their differences are not paired: {advice}"
            )


def _shares(found: Counter[str]) -> str:
    return ", ".join(
        f"{name} ({count} run{'s' if count != 1 else ''})" for name, count in found.most_common()
    )
