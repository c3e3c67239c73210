"""Selections of the long table that several tables and figures share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmark.report.tables.labels import metric_order
from benchmark.report.tables.table import NothingToShow

TIMING = "timing"  # option of runs that were made to be timed
GROUP = ["dataset", "setting", "split", "batch_size"]


def run_states(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per run: its identity, status, reason and versions."""
    columns = ["run_id", "dataset", "setting", "loss", "batch_size", "seed", "status", "reason"]
    return (
        runs[[*columns, "code_version", "platform"]]
        .drop_duplicates("run_id")
        .reset_index(drop=True)
    )


def scores(runs: pd.DataFrame, study: Any, selection: str = "last") -> pd.DataFrame:
    """Returns the finished runs' values of the study's metrics under one selection rule.

    Raises NothingToShow when no run has any.
    """
    wanted = metric_order(runs["metric"].unique(), study)
    kept = runs[
        (runs["selection"] == selection)
        & (runs["status"] == "ok")
        & (runs["split"] != "train")
        & runs["metric"].isin(wanted)
        & runs["value"].notna()
    ]
    kept = without_timing(kept)
    if kept.empty:
        raise NothingToShow("no finished run has a value of the study's metrics yet")
    return kept


def without_timing(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows whose setting has no option "timing": runs that were made to be timed are no contestants."""
    timed = {
        setting for setting in table["setting"].unique() if TIMING in str(setting).split("~")[1:]
    }
    return table[~table["setting"].isin(timed)] if timed else table


def over_seeds(values: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Returns mean, sd, n and the 1 - alpha t interval (low, high) over seeds per group, loss and metric.

    The same numbers as ``benchmark.stats``'s summary, for all cells at once; NaN sd and interval for one seed.
    """
    grouped = values.groupby([*GROUP, "loss", "metric"], observed=True)["value"]
    means = grouped.agg(mean="mean", sd="std", n="count").reset_index()
    half = (
        student.ppf(1 - alpha / 2, np.maximum(means["n"] - 1, 1))
        * means["sd"]
        / np.sqrt(means["n"])
    )
    return means.assign(low=means["mean"] - half, high=means["mean"] + half)


def cost_values(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per finished run and one column per cost metric."""
    costs = runs[(runs["selection"] == "cost") & (runs["status"] == "ok") & runs["value"].notna()]
    if costs.empty:
        raise NothingToShow("no finished run has recorded its cost yet")
    index = ["dataset", "setting", "batch_size", "loss", "seed"]
    frame = costs.pivot_table(
        index=index, columns="metric", values="value", observed=True
    ).reset_index()
    frame.columns.name = None
    return frame
