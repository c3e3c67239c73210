"""Made-up long tables with a known truth, for the tests of statistics and verdicts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark.core.records import LONG_COLUMNS


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
    """Returns finished runs whose scores, in [0, 1], scatter with ``sd`` around the mean of each loss."""
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


def without_number(runs: pd.DataFrame, query: str, status: str) -> pd.DataFrame:
    """Returns ``runs`` with the runs that ``query`` chooses reduced to one row of ``status`` each."""
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
