"""All statistics of a study, from its long table to the CSV files of ``results/<study>/stats``.

Scores are in [0, 1], as in the long table; gains are in percent. Intervals have confidence 1 - alpha
(95% unless the study says otherwise). Every file starts with its place: dataset, setting, batch_size,
split, metric. An interval is the two columns ci_low, ci_high.

| file | one row per | further columns |
|---|---|---|
| summary.csv | place, loss, selection | base_loss, n, mean, sd, interval, minimum, maximum, and the
numbers of runs without a score: n_diverged, n_absent |
| paired.csv | place and tested pair | the columns of a test |
| ablation.csv | place and step of the ablation | step ("1", "2", ..., "total"), the columns of a test |
| gain.csv | place | loss, against, n, gain, sd, interval, gain_of_means (percent) |
| curves.csv | place, loss, epoch | n, mean, sd; of the first metric only |
| best_epoch.csv | place, loss | n, last, last_sd, best, best_sd, difference, epoch (means) |
| differences.csv | place, loss, seed | against (the baseline), value, value_against, difference |
| costs.csv | dataset, setting, batch_size, loss | n, means of time, throughput and memory; loss_share |

Columns of a test: kind ("baseline", "pairs" or "ablation"), loss, against, n (common seeds), mean,
mean_against, difference (loss - against), sd_difference, ci_low, ci_high, t, p, d_z, detectable (smallest
true difference seen with probability 0.8), note, family, p_holm, family_size, significant (p_holm <= alpha).
Tests use selection "last" only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.files import write_text
from benchmark.stats.descriptive import (
    best_epochs,
    costs,
    differences_by_seed,
    learning_curves,
)
from benchmark.stats.intervals import mean_sd, t_half_widths
from benchmark.stats.multiple import holm_by_family
from benchmark.stats.paired import PLACE, TEST, compare
from benchmark.stats.runs import CELL, attempts, checked, scores
from benchmark.stats.steps import ablation_steps, relative_gain

SELECTIONS = ("last", "best")
ABSENT = ("missing", "failed", "stale")
SUMMARY_COLUMNS = [
    *PLACE, "loss", "base_loss", "selection", "n", "mean", "sd", "ci_low", "ci_high", "minimum", "maximum",
    "n_diverged", "n_absent",
]  # fmt: skip
_OUTCOME = [*TEST, "family", "p_holm", "family_size", "significant"]
PAIRED_COLUMNS = [*PLACE, "kind", "loss", "against", *_OUTCOME]
ABLATION_COLUMNS = [*PLACE, "kind", "step", "loss", "against", *_OUTCOME]
GAIN_COLUMNS = [*PLACE, "loss", "against", "n", "gain", "sd", "ci_low", "ci_high", "gain_of_means"]


def analyse(
    runs: pd.DataFrame, comparison: Mapping[str, Any], metrics: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Return the tables of the list above by name.

    ``comparison`` has ``baseline`` (a loss or None), ``ablation`` (losses, simplest first; may be empty)
    and ``alpha``. A loss without a finished run has no row here; the long table names it.
    """
    runs = checked(runs)
    alpha = float(comparison.get("alpha") or 0.05)
    ablation = list(comparison.get("ablation") or [])
    headline = scores(runs, "last", list(metrics))
    paired = compare(headline, comparison.get("baseline"), alpha)
    steps = ablation_steps(headline, ablation, alpha)
    gain = (
        relative_gain(headline, ablation[-1], ablation[-2], alpha)
        if len(ablation) > 1
        else pd.DataFrame()
    )
    return {
        "summary": summarise(runs, metrics, alpha),
        "paired": _with_families(paired, alpha, PAIRED_COLUMNS),
        "ablation": _with_families(steps, alpha, ABLATION_COLUMNS),
        "gain": gain.reindex(columns=GAIN_COLUMNS),
        "curves": learning_curves(runs, metrics),
        "best_epoch": best_epochs(runs, metrics),
        "differences": differences_by_seed(headline, comparison.get("baseline")),
        "costs": costs(runs),
    }


def summarise(runs: pd.DataFrame, metrics: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Returns mean, spread and interval of every cell under both selection rules."""
    status = attempts(runs).set_index(CELL)["status"]
    counts = pd.DataFrame({"n_diverged": status == "diverged", "n_absent": status.isin(ABSENT)})
    counts = counts.groupby(level=CELL).sum().reset_index()
    tables = []
    for selection in SELECTIONS:
        found = scores(runs, selection, list(metrics))
        by_seed = found.pivot(
            index=[*CELL, "split", "metric"], columns="seed", values="value"
        ).sort_index()
        values = by_seed.to_numpy(float)
        n = np.isfinite(values).sum(axis=1)
        mean, sd = mean_sd(values)
        half = t_half_widths(sd, n, 1 - alpha)
        table = by_seed.index.to_frame(index=False).assign(
            selection=selection,
            n=n,
            mean=mean,
            sd=sd,
            ci_low=mean - half,
            ci_high=mean + half,
            minimum=by_seed.min(axis=1).to_numpy(),
            maximum=by_seed.max(axis=1).to_numpy(),
        )
        tables.append(table.merge(counts, on=CELL, how="left"))
    return pd.concat(tables, ignore_index=True).reindex(columns=SUMMARY_COLUMNS)


def write_stats(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Writes each table as ``<folder>/<name>.csv``; equal tables give equal bytes. Returns the paths."""
    paths = []
    for name, table in tables.items():
        path = Path(folder) / f"{name}.csv"
        write_text(path, table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
        paths.append(path)
    return paths


def _with_families(table: pd.DataFrame, alpha: float, columns: list[str]) -> pd.DataFrame:
    if table.empty:
        return table.reindex(columns=columns)
    table = table.copy()
    table["family"] = (
        table["kind"] + ": " + table["dataset"] + " " + table["split"] + " " + table["metric"]
    )
    table["p_holm"], table["family_size"] = holm_by_family(table)
    table["significant"] = table["p_holm"] <= alpha
    return table.reindex(columns=columns)
