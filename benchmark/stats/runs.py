"""Reading the long table, and the two views of it that statistics and verdicts share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.records import LONG_COLUMNS, STATUSES

CELL = ["dataset", "setting", "loss", "base_loss", "batch_size"]
_TEXT = [name for name in LONG_COLUMNS if name not in ("batch_size", "seed", "epoch", "value")]


def load_runs(path: Path) -> pd.DataFrame:
    """Returns the long table at ``path`` with typed columns; raises RunError when it is not one."""
    if not Path(path).is_file():
        study = Path(path).parent.name
        raise RunError(
            f"{path} does not exist: nothing was collected yet; 'python -m benchmark run {study}' trains the study, "
            f"'python -m benchmark collect {study}' takes the runs there are"
        )
    try:
        table = pd.read_csv(
            path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, na_values=[""]
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is not a long table ({error}); collect the study again") from error
    return checked(table, str(path))


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
