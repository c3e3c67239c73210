"""Make the two tables of a study, and its provenance, from the results of its runs."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmark.core.code_version import mixed
from benchmark.core.errors import ConfigError
from benchmark.core.files import check_regular, write_json
from benchmark.core.paths import public
from benchmark.core.records import PROVENANCE, RESULT, RunSpec, settings_of
from benchmark.core.results import Provenance, Result, Scores
from benchmark.core.words import count
from benchmark.datasets import loader_of
from benchmark.datasets.base import Counts
from benchmark.runs.field import with_field
from benchmark.runs.folders import RunStatus, count_by_status, states_of, status_in
from benchmark.runs.run_table import RunTable
from benchmark.study import Study
from benchmark.study.grid import Run
from benchmark.study.model import LABEL
from benchmark.study.trials import final_columns, is_chosen, trial_columns

MOST_BYTES = 1 << 26  # of a file of a stranger


def collect(study: Study, results: Path) -> dict[str, int]:
    """Write a study's tables and provenance below ``results``; return its runs by status.

    A results folder ``@NAME`` in ``results`` is another laboratory's. Its finished runs get tables
    of their own in the study's ``@NAME``, so that nobody pools them with the runs here.
    """
    folder = study.folder(results)
    states = states_of(study, results)
    others = _others(study, results, states)
    table = _table_of(study, states)
    if study.references.field:
        table = with_field(table, study)
    table.write(folder)
    counts = count_by_status(states)
    origin = {"study": study.name, "runs": counts, **provenance_of(states)}
    write_json(folder / PROVENANCE, origin)
    for old in folder.glob("@*"):
        shutil.rmtree(old)
    for name, other in others.items():
        other.write(folder / name)
        counts[f"finished {name}"] = len(other.runs)
    return counts


def _others(
    study: Study, results: Path, states: Sequence[tuple[Run, RunStatus]]
) -> dict[str, RunTable]:
    """Return the finished runs of each other laboratory by the name of its results folder.

    Strangers make these folders, and people name them. Raise ConfigError for what is none, and for
    a run that lies in two places; DataError for a pipe or a large file.
    """
    tables = {}
    problems = []
    places = {str(state.provenance): results / run.spec.folder for run, state in states}
    for folder in sorted(results.glob("@*")):
        if not (re.fullmatch(LABEL, folder.name[1:]) and (folder / "runs").is_dir()):
            problems.append(
                f"{folder} has no laboratory's results (allowed: a folder with 'runs', or a link "
                "to one, whose name is '@' and letters, digits, '_', '.', '+' or '-')"
            )
        finished = []
        for run, _ in states:
            place = folder / run.spec.folder
            if not (place / RESULT).exists():
                continue  # a log may be a link to anything
            for name in (RESULT, PROVENANCE):
                check_regular(place / name, MOST_BYTES)
            state = status_in(place, run.spec)
            if state.result:
                finished.append((run, state))
                first = places.setdefault(str(state.provenance), place)
                if state.provenance and first != place:
                    problems.append(f"{first} and {place} have one run; remove the copy")
        tables[folder.name] = _table_of(study, finished)
    if problems:
        raise ConfigError("collect", problems)
    return tables


def _table_of(study: Study, states: Iterable[tuple[Run, RunStatus]]) -> RunTable:
    """Return the tables of runs with these statuses."""
    rows = []
    scores: list[tuple[Any, ...]] = []
    for run, state in states:
        row = _run_row(run.spec, state)
        if study.trials:
            row |= trial_columns(run.spec)
        elif study.references.trials:
            row |= final_columns(run.spec)
        rows.append(row)
        if state.result:
            scores += _score_rows(run.spec.run_id, state.result)
    return RunTable.from_rows(rows, scores)


def _run_row(spec: RunSpec, status: RunStatus) -> dict[str, Any]:
    row = {
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
        "spec_digest": spec.digest,
        "code_version": status.code_version,
        **public(settings_of(spec)),
    }
    if provenance := status.provenance:
        row |= dataclasses.asdict(provenance.costs)
        row["platform"] = provenance.platform
        row["kernels"] = provenance.numerics.kernels
        row["processor"] = provenance.hardware.processor
    return row


def _score_rows(run_id: str, result: Result) -> Iterator[tuple[Any, ...]]:
    points: list[tuple[str, int, Scores]] = [("last", result.epochs, result.metrics.last)]
    for split, metrics in result.metrics.best.items():
        for name, best in metrics.items():
            points.append(("best", best.epoch, {split: {name: best.value}}))
    for point in result.curve:
        if point.loss is not None:
            points.append(("curve", point.epoch, {"train": {"loss": point.loss}}))
        points.append(("curve", point.epoch, point.scores))
    for selection, epoch, scores in points:
        for split, values in scores.items():
            for metric, value in values.items():
                yield run_id, split, selection, epoch, metric, value


def provenance_of(states: Iterable[tuple[Run, RunStatus]]) -> dict[str, Any]:
    """Return what computed the numbers of a study, with errors and warnings.

    Runs without numbers of the present specification are not considered.
    """
    done = [(run.spec, state.result, state.provenance) for run, state in states if state.result]
    known = [(spec, source) for spec, _, source in done if source]
    codes = Counter(result.code_version for _, result, _ in done)
    platforms = Counter(source.platform for _, source in known)
    kernels = Counter(source.numerics.kernels for _, source in known)
    packages = _grouped(item for _, source in known for item in source.packages.items())
    hardware: Counter[str] = Counter()
    for _, source in known:
        machine = {**dataclasses.asdict(source.hardware), "kernels": source.numerics.kernels}
        hardware[json.dumps(machine, sort_keys=True)] += 1
    weights = _grouped(
        (json.dumps(dataclasses.asdict(source.weights), sort_keys=True), spec.setting.label)
        for spec, source in known
    )
    contents = _grouped(
        (spec.dataset.label, result.dataset.fingerprint) for spec, result, _ in done
    )
    contents_of = {
        spec.dataset.label: _content(spec, result.dataset.counts)
        for spec, result, _ in reversed(done)
    }
    # numbers that cannot be compared
    errors = [
        f"dataset '{label}' had different contents in different runs: {_shares(fingerprints)}; "
        "their numbers cannot be compared: settle on one and run the others again"
        for label, fingerprints in contents.items()
        if len(fingerprints) > 1
    ]
    versions = {
        "of different code versions": codes,
        "of different platforms": platforms,
        "with different kernels": kernels,
    }
    for name in sorted(packages):
        versions[f"with different versions of {name}"] = packages[name]
    warnings = list(_unmatched(done))
    warnings += [f"runs {how}: {_shares(of)}" for how, of in versions.items() if mixed(of)]
    warnings += _changed_on_the_way(known)
    return {
        "code_versions": codes,
        "platforms": platforms,
        "kernels": kernels,
        "packages": packages,
        "hardware": [{**json.loads(text), "runs": n} for text, n in hardware.most_common()],
        "weights": [
            {**json.loads(text), "settings": sorted(settings), "runs": settings.total()}
            for text, settings in sorted(weights.items(), key=lambda item: -item[1].total())
        ],
        "datasets": {
            label: {"fingerprints": fingerprints, **contents_of[label]}
            for label, fingerprints in contents.items()
        },
        "total_seconds": round(sum(source.timing.total_seconds for _, source in known), 1),
        "errors": errors,
        "warnings": warnings,
    }


def _changed_on_the_way(known: list[tuple[RunSpec, Provenance]]) -> Iterator[str]:
    """Yield a warning for runs that ended on another machine, or with other packages."""
    moved = [spec.run_id for spec, source in known if len(source.machines) > 1]
    updated = [spec.run_id for spec, source in known if len(source.package_digests) > 1]
    for how, names in (
        ("on another kind of machine", moved),
        ("with other versions of packages", updated),
    ):
        if names:
            yield (
                f"runs that were continued {how}: {len(names)} (first: {names[0]}); they may "
                "differ in their last digits from runs on either"
            )


def _content(spec: RunSpec, counts: Counts) -> dict[str, Any]:
    """Return the counts of a run's dataset and, if two sets are known, which of them it is."""
    content: dict[str, Any] = {"counts": counts}
    loader = loader_of(spec.dataset.name, spec.dataset.params)
    known_counts = loader.which_counts(counts)
    if known_counts:
        content["which_counts"] = known_counts
    return content


def _unmatched(done: list[tuple[RunSpec, Result, Provenance | None]]) -> Iterator[str]:
    """Yield a warning if compared losses saw other batches or began with other weights."""
    streams = []
    starts = []
    for spec, result, source in done:
        pair = (spec.dataset.label, spec.setting, spec.batch_size, spec.seed)
        # a diverged run may have seen fewer batches than the others
        streams.append(((*pair, result.batch_stream.batches), result.batch_stream.sha256))
        if source:  # settings are labels: networks of several kinds are not compared
            weights = source.weights
            kind = (weights.backbone, weights.weights, weights.parameters)
            starts.append(((*pair, kind), weights.initial_digest))
    for what, groups in (
        ("saw different batches or augmentations", _grouped(streams)),
        ("started from different weights", _grouped(starts)),
    ):
        apart = [pair for pair, digests in groups.items() if len(digests) > 1]
        if apart:
            label, setting, batch_size, seed, _ = apart[0]
            advice = "train them with one version of the code on one kind of machine"
            if all(is_chosen(setting) for _, setting, *_ in apart):
                advice = "trials chose other images of each class for each loss"
            yield (
                f"in {len(apart)} of {len(groups)} groups of runs with one seed the losses "
                f"{what} (first: {label}/{setting}, batch size {batch_size}, seed {seed}), so "
                f"that their differences are not paired: {advice}"
            )


def _grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, Counter[str]]:
    groups: dict[Any, Counter[str]] = defaultdict(Counter)
    for key, value in pairs:
        groups[key][value] += 1
    return groups


def _shares(runs_by_name: Counter[str]) -> str:
    shares = runs_by_name.most_common()
    return ", ".join(f"{name} ({count(runs, 'run')})" for name, runs in shares)
