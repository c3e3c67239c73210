"""The two tables of a study: ``runs.csv`` and ``scores.csv``.

``runs.csv``    one row for each run: identity, settings as data, status, costs (empty if a run has
                none), provenance. ``loss.<hyperparameter>``, ``dataset.<parameter>`` and
                ``recipe.<section>.<option>`` are empty if a run has no such setting, or null.
                ``trials.*`` say which trial a run is, or which trials chose its setting.
``scores.csv``  one row for each number: ``selection`` is "last" (after the last epoch, the
                headline), "best" (best epoch on the test set, kept apart) or "curve" (per epoch).
                Scores are in [0, 1]. The training loss is the metric "loss" of the split "train".
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.files import replacing
from benchmark.core.records import CELL_COLUMNS, SEPARATOR, Cell
from benchmark.core.results import COSTS

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
        runs = _read(folder / RUNS_TABLE, _RUN_NUMBERS)
        for name in _settings(runs):
            runs[name] = _mapped(runs[name], _decode)
        runs["options"] = _mapped(
            runs["options"], lambda text: tuple(filter(None, text.split(SEPARATOR)))
        )
        runs = runs.copy()  # pandas warns about columns that were changed one by one
        return cls(runs, _read(folder / SCORES_TABLE, _NUMBERS))

    def write(self, folder: Path) -> None:
        """Write both tables atomically; equal tables give equal bytes."""
        runs = self.runs.copy()
        for name in _settings(runs):
            runs[name] = _mapped(runs[name], _encode)
        runs["options"] = runs["options"].map(SEPARATOR.join)
        for name, table in ((SCORES_TABLE, self.scores), (RUNS_TABLE, runs)):
            with replacing(folder / name) as temporary:
                table.to_csv(temporary, index=False, lineterminator="\n")

    def statuses(self) -> dict[Cell, Counter[str]]:
        """Return the number of runs by status, for each cell in the order of the study."""
        rows = self.runs[[*CELL_COLUMNS, "status"]].itertuples(index=False)
        counts: dict[Cell, Counter[str]] = defaultdict(Counter)
        for *cell, status in rows:
            counts[Cell.of(cell)][status] += 1
        return dict(counts)

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
        runs = self.finished()[["run_id", *CELL_COLUMNS, "seed"]]
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

    def finished(self) -> pd.DataFrame:
        """Return the rows of the runs that are ok."""
        return self.runs[self.runs["status"] == "ok"]


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
