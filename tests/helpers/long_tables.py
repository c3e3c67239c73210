"""Made-up long tables with a known truth, for the tests of statistics and verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.records import Setting
from benchmark.runs.table import RUN_COLUMNS, SCORE_COLUMNS, RunTable

# One row per number of a run, with all that is said of the run.
LONG_COLUMNS = (
    "run_id", "dataset", "setting", "loss", "base_loss", "batch_size", "seed", "status", "split",
    "selection", "epoch", "metric", "value", "spec_digest", "code_version", "platform", "reason",
)  # fmt: skip


def long_table(
    means: dict[str, float],
    *,
    seeds: int = 5,
    sd: float = 0.003,
    dataset: str = "glyphs",
    setting: str = "tiny",
    batch_sizes: tuple[int, ...] = (32,),
    metrics: tuple[str, ...] = ("recall_at_1", "map_at_r"),
    split: str = "test",
    seed: int = 0,
) -> pd.DataFrame:
    """Returns finished runs whose scores, in [0, 1], scatter with ``sd`` around the mean of each
    loss."""
    rng = np.random.default_rng(seed)
    rows = []
    for loss, mean in means.items():
        for batch_size in batch_sizes:
            for number in range(seeds):
                base = {
                    "run_id": f"{dataset}/{setting}/{loss}/bs{batch_size}/seed{number}",
                    "dataset": dataset,
                    "setting": setting,
                    "loss": loss,
                    "base_loss": loss,
                    "batch_size": batch_size,
                    "seed": number,
                    "status": "ok",
                    "split": split,
                    "epoch": 4,
                    "spec_digest": "d",
                    "code_version": "1",
                    "platform": "cpu",
                    "reason": "",
                }
                for metric in metrics:
                    value = float(rng.normal(mean, sd))
                    rows.append({**base, "selection": "last", "metric": metric, "value": value})
                    rows.append(
                        {**base, "selection": "best", "metric": metric, "value": value + 0.01}
                    )
    return pd.DataFrame(rows, columns=list(LONG_COLUMNS))


def write_long(runs: pd.DataFrame, folder: Path) -> None:
    """Write a long table as runs.csv and scores.csv of a study's folder."""
    run_table(runs).write(folder)


def run_table(runs: pd.DataFrame) -> RunTable:
    """Return a long table as the two tables of a study."""
    rows, scores = [], runs[(runs["metric"].fillna("") != "") & (runs["selection"] != "cost")]
    costs = runs[runs["selection"] == "cost"].groupby("run_id")
    shared = [name for name in LONG_COLUMNS if name in RUN_COLUMNS]
    first = runs.drop_duplicates("run_id")[shared].astype(object)
    for row in first.fillna("").to_dict("records"):
        setting = Setting.from_label(row["setting"])
        row |= {"backbone": setting.backbone, "options": setting.options}
        if row["run_id"] in costs.groups:
            paid = costs.get_group(row["run_id"])
            row |= dict(zip(paid["metric"], paid["value"], strict=True))
        rows.append(row)
    numbers = scores[list(SCORE_COLUMNS)].itertuples(index=False, name=None)
    return RunTable.from_rows(rows, numbers)


def without_number(runs: pd.DataFrame, query: str, status: str) -> pd.DataFrame:
    """Returns ``runs`` with the runs that ``query`` chooses reduced to one row of ``status``
    each."""
    rows = runs.eval(query)
    gone = (
        runs[rows]
        .drop_duplicates("run_id")
        .assign(
            status=status,
            value=np.nan,
            metric="",
            selection="last",
            split="",
            epoch=np.nan,
            reason="made up",
        )
    )
    return pd.concat([runs[~rows], gone], ignore_index=True)
