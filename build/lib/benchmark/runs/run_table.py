"""The two tables of a study: ``runs.csv``, one row a run, and ``scores.csv``, one row a number.

``runs.csv``    identity, settings as data, status, costs (empty where a run has none), provenance.
                ``loss.<hyperparameter>``, ``dataset.<parameter>``, ``recipe.<section>.<option>``
                are empty where a run has no such setting, or where it is null.
``scores.csv``  ``selection`` is "last" (after the last epoch, the headline), "best" (best epoch on
                the test set, kept apart) or "curve" (per epoch). Scores are in [0, 1]. The training
                loss is the metric "loss" of the split "train".
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
)
SCORE_COLUMNS = ("run_id", "split", "selection", "epoch", "metric", "value")
SETTING_PREFIXES = ("dataset.", "loss.", "recipe.")
_WHOLE = ("batch_size", "seed")
# The rule of one best epoch, and the metrics that choose it: the first that is measured.
ONE_BEST = "one_best"
LEADING = ("map_at_r", "map")
_NUMBERS = {"epoch": "int64", "value": "float64"}


@dataclass(frozen=True)
class RunTable:
    """Both tables in memory.

    ``runs`` has typed columns: ``options`` holds tuples, settings hold what the specification says
    (lists as tuples, None for null and for what a run does not have), costs are NaN where there are
    none.
    """

    runs: pd.DataFrame
    scores: pd.DataFrame

    @classmethod
    def from_rows(
        cls, runs: Iterable[Mapping[str, Any]], scores: Iterable[Sequence[Any]]
    ) -> RunTable:
        """Return the tables with these rows; those of ``scores`` are as SCORE_COLUMNS."""
        rows = list(runs)
        settings = sorted(
            {name for row in rows for name in row if name.startswith(SETTING_PREFIXES)}
        )
        columns = [*RUN_COLUMNS, *settings]
        table = pd.DataFrame({name: _column(name, rows) for name in columns}, columns=columns)
        numbers = pd.DataFrame(list(scores), columns=list(SCORE_COLUMNS)).astype(_NUMBERS)
        return cls(table, numbers)

    @classmethod
    def read(cls, folder: Path) -> RunTable:
        """Return the tables in a study's folder; raise RunError naming the one that is missing."""
        whole, real = dict.fromkeys(_WHOLE, "int64"), dict.fromkeys(COSTS, "float64")
        runs = _read(Path(folder) / RUNS_TABLE, {**whole, **real})
        for name in _settings(runs):
            runs[name] = _mapped(runs[name], _decode)
        runs["options"] = _mapped(runs["options"], _options)
        runs = runs.copy()  # columns that were changed one by one lie apart, and pandas warns
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

    def cells(self) -> list[Cell]:
        """Return the cells in the order of the study."""
        return list(self._first_rows)

    def statuses(self) -> dict[Cell, Counter[str]]:
        """Return the number of runs by status, for each cell."""
        result: dict[Cell, Counter[str]] = {cell: Counter() for cell in self._first_rows}
        for *cell, status in self.runs[[*CELL_COLUMNS, "status"]].itertuples(index=False):
            result[Cell.of(cell)][status] += 1
        return result

    def settings(self, cell: Cell) -> dict[str, Any]:
        """Return what the runs of a cell share, null left out: {"loss.tau": 0.01, ...}."""
        row = self.runs.iloc[self._first_rows[cell]]
        return {name: row[name] for name in _settings(self.runs) if row[name] is not None}

    @cached_property
    def _first_rows(self) -> dict[Cell, int]:
        rows: dict[Cell, int] = {}
        for number, cell in enumerate(self.runs[[*CELL_COLUMNS]].itertuples(index=False)):
            rows.setdefault(Cell.of(cell), number)
        return rows

    def attempts(self) -> pd.DataFrame:
        """Return one row a run, those without numbers as well: CELL_COLUMNS, seed, status."""
        return self.runs[[*CELL_COLUMNS, "seed", "status"]]

    def test_scores(
        self, selection: str = "last", metrics: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the finite scores of runs that are ok, on all splits but "train".

        Columns: run_id, CELL_COLUMNS, seed, split, epoch, metric, value. ``selection`` is "last",
        "best", "curve", or "one_best": all metrics of the epoch whose mAP@R (mAP where that is not
        measured) is the best of a split, the first one on ties, as ROADMAP's code reports them.
        """
        scores = self._one_best if selection == ONE_BEST else self.scores
        rows = (scores["selection"] == selection) & (scores["split"] != "train")
        rows &= np.isfinite(scores["value"])
        if metrics is not None:
            rows &= scores["metric"].isin(list(metrics))
        return self._with_cells(scores.loc[rows].drop(columns="selection"))

    @cached_property
    def _one_best(self) -> pd.DataFrame:
        """One epoch's scores for each run and split; those of the last one without a curve."""
        scores = self.scores
        curve = scores[(scores["selection"] == "curve") & (scores["split"] != "train")]
        place = ["run_id", "split"]
        lead = curve[curve["metric"].isin(LEADING)]
        order = lead["metric"].map(LEADING.index)
        lead = lead.assign(order=order).sort_values(
            ["order", "value", "epoch"], ascending=[True, False, True], kind="stable"
        )
        epochs = lead.drop_duplicates(place)[[*place, "epoch"]]
        chosen = curve.merge(epochs, on=[*place, "epoch"])
        last = scores[scores["selection"] == "last"]
        without = last[~last["run_id"].isin(set(chosen["run_id"]))]
        return pd.concat([chosen, without]).assign(selection=ONE_BEST)

    def costs(self) -> pd.DataFrame:
        """Return one row for each run that is ok: run_id, CELL_COLUMNS, seed, and every cost."""
        rows = self.runs["status"] == "ok"
        return self.runs.loc[rows, ["run_id", *CELL_COLUMNS, "seed", *COSTS]]

    def _with_cells(self, scores: pd.DataFrame) -> pd.DataFrame:
        runs = self.runs.loc[self.runs["status"] == "ok", ["run_id", *CELL_COLUMNS, "seed"]]
        columns = [*runs.columns, "split", "epoch", "metric", "value"]
        return scores.merge(runs, on="run_id")[columns]


def _settings(runs: pd.DataFrame) -> list[str]:
    return [name for name in runs.columns if name.startswith(SETTING_PREFIXES)]


def _column(name: str, rows: list[Mapping[str, Any]]) -> pd.Series[Any]:
    values = [row.get(name) for row in rows]
    if name in COSTS:
        return pd.Series(values, dtype=float)
    if name in _WHOLE:
        return pd.Series(values, dtype=int)
    values = [tuple(value) if isinstance(value, list) else value for value in values]
    return pd.Series(values, dtype=object)


def _read(path: Path, numbers: Mapping[str, str]) -> pd.DataFrame:
    """Return the table in a file: columns that are not in ``numbers`` hold texts.

    An empty field is "" in a column of texts, NaN in one of float64.
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
    """Return ``values`` changed one by one; equal ones, of which there are many, only once."""
    keys = [repr(value) for value in values]
    changed = {key: change(value) for key, value in dict(zip(keys, values, strict=True)).items()}
    return pd.Series([changed[key] for key in keys], index=values.index, dtype=object)


def _options(text: str) -> tuple[str, ...]:
    return tuple(text.split(SEPARATOR)) if text else ()


def _encode(value: Any) -> str:
    """Return the cell of a setting: text where it reads as text, everything else as JSON."""
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
