"""The two tables of a study, ``runs.csv`` and ``scores.csv``, and its provenance, from its runs.

``runs.csv``    one row for each run: identity, settings as data, status, costs (empty if a run has
                none), provenance. ``loss.<hyperparameter>``, ``dataset.<parameter>`` and
                ``recipe.<section>.<option>`` are empty if a run has no such setting, or null.
                ``trials.*`` say which trial a run is, or which trials chose its setting.
``scores.csv``  one row for each number: ``selection`` is "last" (after the last epoch, the
                headline), "best" (best epoch on the test set, kept apart) or "curve" (per epoch).
                Scores are in [0, 1]. The training loss is the metric "loss" of the split "train".
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.code_version import mixed
from benchmark.core.errors import ReferenceDataError, RunError
from benchmark.core.files import replacing, write_json
from benchmark.core.paths import public
from benchmark.core.records import CELL_COLUMNS, PROVENANCE, SEPARATOR, Cell, RunSpec, settings_of
from benchmark.core.results import COSTS, Provenance, Result, Scores
from benchmark.core.words import count
from benchmark.datasets import loader_of
from benchmark.datasets.base import Counts
from benchmark.runs.folders import RunStatus, count_by_status, states_of
from benchmark.study import Study
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.grid import Run
from benchmark.study.trials import EQUAL, final_columns, trial_columns

RUNS_TABLE = "runs.csv"
SCORES_TABLE = "scores.csv"

RUN_COLUMNS = (
    "run_id",
    "dataset",  # label
    "setting",  # label: the backbone's, followed by the options
    "backbone",
    "options",
    "loss",  # label of the variant
    "base_loss",  # registry name
    "batch_size",
    "seed",
    "status",  # one of STATUSES
    "reason",  # why a run is diverged, stale or failed
    *COSTS,
    "spec_digest",
    "code_version",
    "platform",
    "kernels",
    "processor",  # or the GPUs
)
SCORE_COLUMNS = ("run_id", "split", "selection", "epoch", "metric", "value")
SETTING_PREFIXES = ("dataset.", "loss.", "recipe.", "trials.")
_RUN_NUMBERS = dict.fromkeys(("batch_size", "seed"), "int64") | dict.fromkeys(COSTS, "float64")
# Rules that choose one epoch for all metrics, by the first of these metrics that is measured.
LEADING = {"one_best": ("map_at_r", "map"), "best_recall_at_1": ("recall_at_1",)}
_NUMBERS = {"epoch": "int64", "value": "float64"}


@dataclass(frozen=True)
class RunTable:
    """Both tables in memory.

    ``runs`` has typed columns: ``options`` holds tuples. Settings hold the values of the
    specification, with lists as tuples, and None for null and for an absent setting. Absent costs
    are NaN.
    """

    runs: pd.DataFrame
    scores: pd.DataFrame

    @classmethod
    def from_rows(
        cls, runs: Iterable[Mapping[str, Any]], scores: Iterable[Sequence[Any]]
    ) -> RunTable:
        """Return the tables with these rows; a row of ``scores`` has the SCORE_COLUMNS."""
        rows = list(runs)
        settings = {name for row in rows for name in row if name.startswith(SETTING_PREFIXES)}
        columns = [*RUN_COLUMNS, *sorted(settings)]
        values = {name: [row.get(name) for row in rows] for name in columns}
        numbers = pd.DataFrame(list(scores), columns=list(SCORE_COLUMNS)).astype(_NUMBERS)
        typed = pd.DataFrame(values, columns=columns, dtype=object).astype(_RUN_NUMBERS)
        return cls(typed, numbers)

    @classmethod
    def read(cls, folder: Path) -> RunTable:
        """Return the tables in a study's folder; raise RunError if one is missing."""
        runs = _read(Path(folder) / RUNS_TABLE, _RUN_NUMBERS)
        for name in _settings(runs):
            runs[name] = _mapped(runs[name], _decode)
        runs["options"] = _mapped(
            runs["options"], lambda text: tuple(filter(None, text.split(SEPARATOR)))
        )
        runs = runs.copy()  # pandas warns about columns that were changed one by one
        return cls(runs, _read(Path(folder) / SCORES_TABLE, _NUMBERS))

    def write(self, folder: Path) -> None:
        """Write both tables atomically; equal tables give equal bytes."""
        runs = self.runs.copy()
        for name in _settings(runs):
            runs[name] = _mapped(runs[name], _encode)
        runs["options"] = runs["options"].map(SEPARATOR.join)
        for name, table in ((SCORES_TABLE, self.scores), (RUNS_TABLE, runs)):
            with replacing(Path(folder) / name) as temporary:
                table.to_csv(temporary, index=False, lineterminator="\n")

    def statuses(self) -> dict[Cell, Counter[str]]:
        """Return the number of runs by status, for each cell in the order of the study."""
        rows = self.runs[[*CELL_COLUMNS, "status"]].itertuples(index=False)
        return _grouped((Cell.of(cell), status) for *cell, status in rows)

    def attempts(self) -> pd.DataFrame:
        """Return one row for each run, also without numbers: CELL_COLUMNS, seed, status."""
        return self.runs[[*CELL_COLUMNS, "seed", "status"]]

    def test_scores(
        self, selection: str = "last", metrics: Sequence[str] | None = None, lead: str = ""
    ) -> pd.DataFrame:
        """Return the finite scores of runs that are ok, on all splits but "train".

        Columns: run_id, CELL_COLUMNS, seed, split, epoch, metric, value. ``selection`` is "last",
        "best", "curve", or a rule of ``LEADING``: all metrics of the epoch at which the leading one
        is best on a split, the first on ties. The split ``lead`` chooses for all splits of a run.
        """
        scores = self._at_one_epoch(selection, lead) if selection in LEADING else self.scores
        rows = (scores["selection"] == selection) & (scores["split"] != "train")
        rows &= np.isfinite(scores["value"])
        if metrics is not None:
            rows &= scores["metric"].isin(list(metrics))
        runs = self.runs.loc[self.runs["status"] == "ok", ["run_id", *CELL_COLUMNS, "seed"]]
        columns = [*runs.columns, "split", "epoch", "metric", "value"]
        merged: pd.DataFrame = scores.loc[rows].merge(runs, on="run_id")[columns]
        return merged

    def _at_one_epoch(self, rule: str, lead: str) -> pd.DataFrame:
        """Return one epoch's scores for each run and split; of the last one without a curve."""
        scores = self.scores
        curve = scores[(scores["selection"] == "curve") & (scores["split"] != "train")]
        led = curve["run_id"].isin(curve.loc[curve["split"] == lead, "run_id"])
        curve = curve.assign(leader=curve["split"].mask(led, lead))
        keys = ["run_id", "leader"]
        metrics = LEADING[rule]
        leads = curve[(curve["split"] == curve["leader"]) & curve["metric"].isin(metrics)]
        leads = leads.assign(order=leads["metric"].map(metrics.index)).sort_values(
            ["order", "value", "epoch"], ascending=[True, False, True], kind="stable"
        )
        epochs = leads.drop_duplicates(keys)[[*keys, "epoch"]]
        chosen = curve.merge(epochs, on=[*keys, "epoch"])
        last = scores[scores["selection"] == "last"]
        without = last[~last["run_id"].isin(set(chosen["run_id"]))]
        return pd.concat([chosen, without]).assign(selection=rule)

    def costs(self) -> pd.DataFrame:
        """Return one row for each run that is ok: run_id, CELL_COLUMNS, seed, and every cost."""
        rows = self.runs["status"] == "ok"
        return self.runs.loc[rows, ["run_id", *CELL_COLUMNS, "seed", *COSTS]]


def _settings(runs: pd.DataFrame) -> list[str]:
    return [name for name in runs.columns if name.startswith(SETTING_PREFIXES)]


def _read(path: Path, numbers: Mapping[str, str]) -> pd.DataFrame:
    """Return the table in a file: columns that are not in ``numbers`` hold texts.

    An empty field is "" in a column of texts, and NaN in a column of float64.
    """
    if not path.is_file():
        study = path.parent.name
        raise RunError(
            f"{path} does not exist: nothing was collected yet; 'python -m benchmark run {study}' "
            f"trains the study, 'python -m benchmark collect {study}' takes the runs so far"
        )
    return pd.read_csv(
        path,
        dtype=defaultdict(lambda: "object", numbers),
        keep_default_na=False,
        na_values={name: [""] for name, kind in numbers.items() if kind == "float64"},
        low_memory=False,
    )


def _mapped(values: pd.Series[Any], change: Callable[[Any], Any]) -> pd.Series[Any]:
    """Return ``values`` with ``change`` applied, once for all equal values, which are many."""
    keys = [repr(value) for value in values]
    changed = {key: change(value) for key, value in dict(zip(keys, values, strict=True)).items()}
    return pd.Series([changed[key] for key in keys], index=values.index, dtype=object)


def _encode(value: Any) -> str:
    """Return a setting as text: a string that is not JSON as it is, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str) and value and _decode(value) == value:
        return value
    return json.dumps(value)


def _decode(text: str) -> Any:
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def collect(study: Study, results: Path) -> dict[str, int]:
    """Write a study's tables and provenance below ``results``; return its runs by status."""
    states = states_of(study, results)
    folder = study.folder(results)
    rows = []
    for run, state in states:
        row = _run_row(run.spec, state)
        if study.trials:
            row |= trial_columns(run.spec)
        elif study.references.trials:
            row |= final_columns(run.spec)
        rows.append(row)
    table = RunTable.from_rows(
        rows, [row for _, state in states if state.result for row in _score_rows(state.result)]
    )
    if study.references.field:
        table = with_field(table, study)
    table.write(folder)
    counts = count_by_status(states)
    origin = {"study": study.name, "runs": counts, **provenance_of(states)}
    write_json(folder / PROVENANCE, origin)
    return counts


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
        "platform": "",
        "kernels": "",
        "processor": "",
        **public(settings_of(spec)),
    }
    if provenance := status.provenance:
        row |= dataclasses.asdict(provenance.costs)
        row["platform"] = provenance.platform
        row["kernels"] = provenance.numerics.kernels
        row["processor"] = provenance.hardware.processor
    return row


def _score_rows(result: Result) -> Iterator[tuple[str, str, str, int, str, float]]:
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
                yield result.run_id, split, selection, epoch, metric, value


OF_FIELD = ("loss.", "recipe.optimizer.", "recipe.sampler.", "trials.")


def with_field(table: RunTable, study: Study) -> RunTable:
    """Return the table of a study with the frozen runs of the losses that it does not run.

    Only cells that differ from a cell of the study in the loss alone are added: a study of four
    trials gets the first four trials of the field.
    """
    kind = TRIALS if study.trials else FINAL
    field = RunTable.read(field_folder(study.references.field, kind))
    shared = ["dataset", "setting", "batch_size", "seed"]
    others = field.runs.merge(table.runs[shared].drop_duplicates(), on=shared)
    others = others[~others["loss"].isin(table.runs["loss"])]
    runs = pd.concat([table.runs, others], ignore_index=True).astype(object)
    runs = runs.where(runs.notna(), None).astype(dict(table.runs.dtypes))
    scores = field.scores[field.scores["run_id"].isin(others["run_id"])]
    return RunTable(runs, pd.concat([table.scores, scores], ignore_index=True))


def freeze_field(trials: RunTable, final: RunTable, metric: str, folder: Path) -> int:
    """Write both tables below ``folder``; return the number of runs.

    Raise ReferenceDataError if a run has no result, because nobody would notice it later.
    """
    for name, table in ((TRIALS, trials), (FINAL, final)):
        holes = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
        if len(holes):
            raise ReferenceDataError(
                f"{len(holes)} runs have no result (first: {holes['run_id'].iloc[0]}), nothing was "
                "frozen; run the study to its end first"
            )
        settings = [column for column in table.runs.columns if column.startswith(OF_FIELD)]
        last = (table.scores["selection"] == "last") & (table.scores["metric"] == metric)
        RunTable(table.runs[[*RUN_COLUMNS, *settings]], table.scores[last]).write(folder / name)
    return len(trials.runs) + len(final.runs)


def _grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, Counter[str]]:
    groups: dict[Any, Counter[str]] = defaultdict(Counter)
    for key, value in pairs:
        groups[key][value] += 1
    return dict(groups)


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
    versions = {"of different code versions": codes, "of different platforms": platforms}
    versions |= {"with different kernels": kernels}
    versions |= {f"with different versions of {name}": packages[name] for name in sorted(packages)}
    moved = [spec.run_id for spec, source in known if len(source.machines) > 1]
    updated = [spec.run_id for spec, source in known if len(source.package_digests) > 1]
    warnings = list(_unmatched(done))
    warnings += [f"runs {how}: {_shares(of)}" for how, of in versions.items() if mixed(of)]
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
        "code_versions": dict(codes),
        "platforms": dict(platforms),
        "kernels": dict(kernels),
        "packages": {name: dict(versions) for name, versions in packages.items()},
        "hardware": [{**json.loads(text), "runs": n} for text, n in hardware.most_common()],
        "weights": [
            {**json.loads(text), "settings": sorted(settings), "runs": settings.total()}
            for text, settings in sorted(weights.items(), key=lambda item: -item[1].total())
        ],
        "datasets": {
            label: {"fingerprints": dict(fingerprints), **contents_of[label]}
            for label, fingerprints in contents.items()
        },
        "total_seconds": round(sum(source.timing.total_seconds for _, source in known), 1),
        # numbers that cannot be compared
        "errors": [
            f"dataset '{label}' had different contents in different runs: {_shares(fingerprints)}; "
            "their numbers cannot be compared: settle on one and run the others again"
            for label, fingerprints in contents.items()
            if len(fingerprints) > 1
        ],
        "warnings": warnings,
    }


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
        pair = (spec.dataset.label, spec.setting.label, spec.batch_size, spec.seed)
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
            if all(f"{SEPARATOR}{EQUAL}" in str(pair[1]) for pair in apart):
                advice = "trials chose other images of each class for each loss"
            yield (
                f"in {len(apart)} of {len(groups)} groups of runs with one seed the losses "
                f"{what} (first: {label}/{setting}, batch size {batch_size}, seed {seed}), so "
                f"that their differences are not paired: {advice}"
            )


def _shares(runs_by_name: Counter[str]) -> str:
    shares = runs_by_name.most_common()
    return ", ".join(f"{name} ({count(runs, 'run')})" for name, runs in shares)
