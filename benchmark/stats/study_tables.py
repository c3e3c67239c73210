"""All statistics of a study, from its collected runs to the CSV files of ``results/<study>/stats``.

docs/background/statistics.md has the files, their columns and units.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest

from benchmark.core.records import CELL_COLUMNS
from benchmark.runs.run_table import RunTable
from benchmark.stats.batch_sizes import batch_size_tests
from benchmark.stats.intervals import Floats, diverges, percentile_interval, t_intervals
from benchmark.stats.over_datasets import analyse_datasets
from benchmark.stats.paired import GROUP, TEST, compare, corrected
from benchmark.stats.queries import LOSS_CELL, Draws, with_query_intervals
from benchmark.study.model import Comparison

CELL = list(CELL_COLUMNS)
SUMMARY_COLUMNS = [
    *GROUP,
    "loss",
    "base_loss",
    "selection",
    "n",
    "mean",
    "sd",
    "ci_low",
    "ci_high",
    "minimum",
    "maximum",
    "n_diverged",
    "n_absent",
]
_OUTCOME = [*TEST, "detectable", "family", "p_holm", "family_size", "significant", "lost"]
PAIRED_COLUMNS = [*GROUP, "kind", "loss", "against", *_OUTCOME]
ABLATION_COLUMNS = [*GROUP, "kind", "step", "loss", "against", *_OUTCOME]
DIFFERENCE_COLUMNS = [*GROUP, "loss", "against", "seed", "value", "value_against", "difference"]
DIVERGENCE_COLUMNS = [*LOSS_CELL, "n_diverged", "n_ended", "rate", "low", "high", "diverges"]
COST_COLUMNS = [
    *LOSS_CELL,
    "n",
    "train_seconds",
    "images_per_second",
    "loss_ms",
    "loss_ms_minimum",
    "loss_ms_maximum",
    "loss_share",
    "peak_gpu_mb",
    "peak_rss_mb",
]
# Seeds of their own for each source of noise, which then form a square of runs.
SOURCES = ("initial weights", "batch order", "augmentation")
INTERACTION = "interaction"
SEEDS = ("recipe.seeds.weights", "recipe.seeds.order", "recipe.seeds.augmentation")
SMALLEST = 3
REPETITIONS = 2000
NOISE_COLUMNS = [*GROUP, "loss", "source", "sd", "share", "low", "high", "runs", "mean"]
_MEASURED = ("train_seconds", "images_per_second", "loss_ms", "peak_gpu_mb", "peak_rss_mb")


def analyse(
    table: RunTable, comparison: Comparison, metrics: Sequence[str], draws: Draws | None = None
) -> dict[str, pd.DataFrame]:
    """Return the tables of all files by name; ``draws`` are of the runs' queries.

    A loss without a finished run has no row here; the table of runs names it.
    """
    alpha = comparison.alpha
    headline = table.test_scores("last", metrics)
    # runs of a square share seeds, so they are not a sample
    headline = headline[~headline["run_id"].isin(square_runs(table)["run_id"])]
    rates = divergence_rates(table, 1 - alpha)
    summary = summarise(table, metrics, alpha)
    last = summary["selection"] == "last"
    tests = _tests(table, headline, comparison, rates)
    steps = tests["kind"] == "ablation"
    paired = tests.loc[~steps, PAIRED_COLUMNS].reset_index(drop=True)
    steps_of_ablation = tests.loc[steps, ABLATION_COLUMNS].reset_index(drop=True)
    usable = headline.merge(rates.loc[~rates["diverges"].astype(bool), LOSS_CELL])
    of_last_epoch = with_query_intervals(summary[last], draws, 1 - alpha)
    return {
        "summary": pd.concat([of_last_epoch, summary[~last]]),
        "paired": with_query_intervals(paired, draws, 1 - alpha),
        "ablation": with_query_intervals(steps_of_ablation, draws, 1 - alpha),
        "batch_sizes": batch_size_tests(usable, alpha),
        "curves": learning_curves(table, metrics),
        "best_epoch": best_epochs(table, metrics),
        "differences": differences_by_seed(headline, comparison.baseline),
        "costs": costs(table),
        "divergence": rates,
        "noise": noise_shares(table, metrics, alpha),
        **analyse_datasets(table, metrics, alpha),
    }


def _tests(
    table: RunTable, headline: pd.DataFrame, comparison: Comparison, rates: pd.DataFrame
) -> pd.DataFrame:
    """Return the tests corrected within their families. ``lost`` is the side that diverges."""
    # A diverged run gets an empty score for each split and metric. So a loss that diverges under
    # every seed is compared as well, and loses.
    runs = table.attempts()
    diverged = runs[runs["status"] == "diverged"].drop(columns="status")
    measured = headline[["dataset", "setting", "split", "metric"]].drop_duplicates()
    empty = diverged.merge(measured, on=["dataset", "setting"])
    attempted = pd.concat([headline, empty])
    tests = compare(attempted, comparison.baseline, comparison.alpha, comparison.ablation)
    if not tests.empty:
        family = tests["kind"] + ": " + tests["dataset"] + " " + tests["split"]
        family += " " + tests["metric"]
        tests = corrected(tests.assign(family=family), comparison.alpha)
    tests = tests.reindex(columns=ABLATION_COLUMNS)
    diverging = pd.MultiIndex.from_frame(rates.loc[rates["diverges"], LOSS_CELL])

    def diverges_on(side: str) -> NDArray[np.bool_]:
        cells = tests[["dataset", "setting", "batch_size", side]]
        return pd.MultiIndex.from_frame(cells).isin(diverging)

    one = diverges_on("loss")
    two = diverges_on("against")
    second_lost = tests["against"].where(two & ~one, "")
    lost = tests["loss"].where(one & ~two, second_lost)
    significant = tests["significant"].astype(bool) & (one == two)
    return tests.assign(lost=lost, significant=significant)


def summarise(table: RunTable, metrics: Sequence[str], alpha: float) -> pd.DataFrame:
    """Return mean, spread and interval of every cell under both selection rules."""
    runs = table.attempts()
    status = runs["status"]
    absent = status.isin(("missing", "failed", "stale"))
    counts = runs[CELL].assign(n_diverged=status == "diverged", n_absent=absent)
    counts = counts.groupby(CELL, as_index=False).sum()
    tables = []
    square = square_runs(table)["run_id"]
    for selection in ("last", "best"):
        scores = table.test_scores(selection, metrics)
        shared = scores.loc[scores["run_id"].isin(square), "setting"].unique()
        index = [*CELL, "split", "metric"]
        by_seed = scores.pivot(index=index, columns="seed", values="value")
        by_seed = by_seed.sort_index()
        n, mean, sd, low, high = t_intervals(by_seed.to_numpy(float), 1 - alpha)
        rows = by_seed.index.to_frame(index=False).assign(
            selection=selection,
            n=n,
            mean=mean,
            sd=sd,
            ci_low=low,
            ci_high=high,
            minimum=by_seed.min(axis=1).to_numpy(),
            maximum=by_seed.max(axis=1).to_numpy(),
        )
        rows.loc[rows["setting"].isin(shared), ["ci_low", "ci_high"]] = np.nan
        tables.append(rows.merge(counts, on=CELL, how="left"))
    return pd.concat(tables, ignore_index=True).reindex(columns=SUMMARY_COLUMNS)


def learning_curves(table: RunTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the mean over seeds after each evaluated epoch, of the first metric with values."""
    curves = table.test_scores("curve")
    names = set(curves["metric"])
    measured = [metric for metric in metrics if metric in names]
    of_headline = curves[curves["metric"].isin(measured[:1])]
    groups = of_headline.groupby([*GROUP, "loss", "epoch"])["value"]
    means = groups.agg(n="count", mean="mean", sd="std").reset_index()
    return means.astype({"epoch": int})


def best_epochs(table: RunTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores of the last epoch and of the best test epoch, over the runs with both.

    ``difference`` is the mean of best - last. ``epoch`` is the mean best epoch.
    """
    keys = [*GROUP, "loss", "seed"]
    last = table.test_scores("last", metrics)[[*keys, "value"]]
    best = table.test_scores("best", metrics)[[*keys, "value", "epoch"]]
    both = last.merge(best, on=keys, suffixes=("_last", "_best"))
    both["difference"] = both["value_best"] - both["value_last"]
    means = both.groupby([*GROUP, "loss"]).agg(
        n=("difference", "size"),
        last=("value_last", "mean"),
        last_sd=("value_last", "std"),
        best=("value_best", "mean"),
        best_sd=("value_best", "std"),
        difference=("difference", "mean"),
        epoch=("epoch", "mean"),
    )
    return means.reset_index()


def side_by_side(
    tables: Mapping[str, RunTable], metrics: Sequence[str], alpha: float
) -> pd.DataFrame:
    """Return the summary after the last epoch of what two laboratories have, for each of them.

    ``difference`` is the mean - that of the first laboratory that has one. Nothing is pooled.
    """
    parts = []
    for laboratory, table in tables.items():
        summary = summarise(table, metrics, alpha)
        last = summary[summary["selection"] == "last"]
        parts.append(last.assign(laboratory=laboratory))
    rows = pd.concat(parts, ignore_index=True)
    means = rows.groupby([*GROUP, "loss"])["mean"]
    rows["difference"] = rows["mean"] - means.transform("first")
    return rows[means.transform("size") > 1]


def differences_by_seed(headline: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Return the difference of each run to the baseline's run with the same seed, if there is one.

    ``headline`` has one row per run and metric (``RunTable.test_scores``).
    """
    keys = [*GROUP, "seed"]
    against = headline.loc[headline["loss"] == baseline, [*keys, "value"]]
    others = headline[headline["loss"] != baseline]
    table = others.merge(against, on=keys, suffixes=("", "_against"))
    table = table.assign(against=baseline)
    table["difference"] = table["value"] - table["value_against"]
    return table.sort_values([*GROUP, "loss", "seed"]).reindex(columns=DIFFERENCE_COLUMNS)


def costs(table: RunTable) -> pd.DataFrame:
    """Return what training cost: means over the finished runs of a cell that took a step.

    ``loss_share`` is the time of the loss over the time of a step. The time of a step is images of
    a batch / images per second.
    """
    runs = table.finished()
    cells = runs[runs["images_per_second"] > 0].groupby(LOSS_CELL)
    # a batch of triplets has more images than its size says
    images_backward = cells["images_backward"].sum(min_count=1)
    updates = cells["updates"].sum(min_count=1)
    means = cells[list(_MEASURED)].mean()
    means = means.assign(
        n=cells.size(),
        loss_ms_minimum=cells["loss_ms"].min(),
        loss_ms_maximum=cells["loss_ms"].max(),
        images=images_backward / updates,
    )
    means = means.reset_index()
    images = means["images"].fillna(means["batch_size"])
    step_ms = 1000 * images / means["images_per_second"]
    means["loss_share"] = means["loss_ms"] / step_ms
    return means.reindex(columns=COST_COLUMNS)


def divergence_rates(table: RunTable, confidence: float = 0.95) -> pd.DataFrame:
    """Return the rate of divergence of each cell with an ended run (``DIVERGENCE_COLUMNS``).

    The interval is the exact one of Clopper and Pearson (1934).
    """
    runs = table.attempts()
    rows = []
    ended_runs = runs[runs["status"].isin(["ok", "diverged"])]
    for cell, statuses in ended_runs.groupby(LOSS_CELL)["status"]:
        diverged = int((statuses == "diverged").sum())
        ended = len(statuses)
        low, high = binomtest(diverged, ended).proportion_ci(confidence)
        rate = diverged / ended
        rows.append((*cell, diverged, ended, rate, low, high, diverges(diverged, ended)))
    return pd.DataFrame(rows, columns=DIVERGENCE_COLUMNS)


def square_runs(table: RunTable) -> pd.DataFrame:
    """Return run_id and ``SEEDS`` of the runs that have a seed for each source."""
    runs = table.runs.reindex(columns=["run_id", *SEEDS]).dropna()
    return runs.astype(dict.fromkeys(SEEDS, int))


def noise_shares(table: RunTable, metrics: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Return the shares of the sources for each whole square of a study (``NOISE_COLUMNS``)."""
    scores = table.test_scores("last", metrics).merge(square_runs(table), on="run_id")
    group = [*GROUP, "loss"]
    tables = [pd.DataFrame()]
    cell: Any
    for cell, runs_of_cell in scores.groupby(group):
        square = runs_of_cell.pivot(index=SEEDS[0], columns=SEEDS[1], values="value")
        size = len(square)
        values = square.to_numpy(float)
        whole = all([*axis] == [*range(size)] for axis in square.axes)
        if size >= SMALLEST and whole and np.isfinite(values).all():
            facts = dict(zip(group, cell, strict=True))
            rows = shares(values, 1 - alpha)
            rows = rows.assign(runs=len(runs_of_cell), mean=float(values.mean()), **facts)
            tables.append(rows)
    return pd.concat(tables, ignore_index=True).reindex(columns=NOISE_COLUMNS)


def shares(scores: Floats, confidence: float = 0.95) -> pd.DataFrame:
    """Return source, sd, share, low and high of ``SOURCES`` and ``INTERACTION`` in one run.

    ``scores`` (k, k) are of the runs of a Latin square, k at least 3. Run (i, j) has initial
    weights i, batch order j and augmentation (i + j) mod k (``study.model.square_seeds``). The mean
    square of a source is expected to be interaction + k * its variance (docs/background/noise.md).
    """
    size = len(scores)
    centred = scores - scores.mean()
    numbers = np.arange(size)
    diagonal_of = np.add.outer(numbers, numbers) % size
    diagonals = np.bincount(diagonal_of.ravel(), weights=centred.ravel()) / size
    means = (centred.mean(axis=1), centred.mean(axis=0), diagonals)
    of_sources = [size * float((mean**2).sum()) for mean in means]
    total = float((centred**2).sum())
    left = max(total - sum(of_sources), 0.0)
    squares = np.array([*of_sources, left])
    df_left = (size - 1) * (size - 2)
    df = np.array([size - 1, size - 1, size - 1, df_left])

    def variances(mean_squares: Floats) -> Floats:
        """Return the variances of the sources and of the rest, from mean squares (..., 4)."""
        left = mean_squares[..., 3:]
        sources = np.maximum((mean_squares[..., :3] - left) / size, 0.0)
        return np.concatenate([sources, left], axis=-1)

    def shares_of_total(values: Floats) -> Floats:
        total = values.sum(axis=-1, keepdims=True)
        return values / np.where(total > 0, total, 1.0)

    measured = variances(squares / df)
    rng = np.random.default_rng(0)
    drawn_df = rng.chisquare(df, (REPETITIONS, len(df)))
    drawn = variances(squares / drawn_df)
    low, high = percentile_interval(shares_of_total(drawn), confidence)
    columns = {
        "source": [*SOURCES, INTERACTION],
        "sd": measured**0.5,
        "share": shares_of_total(measured),
        "low": low,
        "high": high,
    }
    return pd.DataFrame(columns)
