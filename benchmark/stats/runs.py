"""Reading the long table, and the two views of it that statistics and verdicts share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.records import LONG_COLUMNS, STATUSES
from benchmark.runs.table import RunTable

CELL = ["dataset", "setting", "loss", "base_loss", "batch_size"]
_TEXT = [name for name in LONG_COLUMNS if name not in ("batch_size", "seed", "epoch", "value")]


def load_runs(path: Path) -> pd.DataFrame:
    """Return the long table of the study that ``path`` (its runs.csv) belongs to."""
    return checked(RunTable.read(Path(path).parent).long(), str(path))


def checked(table: pd.DataFrame, source: str = "the table of runs") -> pd.DataFrame:
    """Returns ``table`` with typed columns and "" for empty texts; raises RunError naming what is wrong."""
    missing = [name for name in LONG_COLUMNS if name not in table]
    if missing:
        raise RunError(f"{source} lacks the columns {', '.join(missing)}; collect the study again")
    table = table.copy()
    for name in _TEXT:
        table[name] = table[name].astype(object).where(table[name].notna(), "").astype(str)
    for name in ("batch_size", "seed", "epoch", "value"):
        table[name] = pd.to_numeric(table[name], errors="coerce")
    if table[["batch_size", "seed"]].isna().any(axis=None):
        raise RunError(f"{source} has rows without batch size or seed; collect the study again")
    table[["batch_size", "seed"]] = table[["batch_size", "seed"]].astype(int)
    unknown = sorted(set(table["status"]) - set(STATUSES))
    if unknown:
        raise RunError(
            f"{source} has the unknown status {', '.join(unknown)}; known: {', '.join(STATUSES)}"
        )
    return table


def scores(
    runs: pd.DataFrame, selection: str = "last", metrics: list[str] | None = None
) -> pd.DataFrame:
    """Returns the finite test scores of finished runs under one selection rule: a row per run and metric."""
    keep = (
        (runs["status"] == "ok")
        & (runs["selection"] == selection)
        & (runs["split"] != "train")
        & np.isfinite(runs["value"])
    )
    if metrics is not None:
        keep &= runs["metric"].isin(metrics)
    found = runs.loc[keep]
    return found.drop_duplicates([*CELL, "seed", "split", "metric"], keep="last")


def attempts(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per run: its cell, seed and status. Runs without a number appear here too."""
    return runs.drop_duplicates([*CELL, "seed"])[[*CELL, "seed", "status"]]
