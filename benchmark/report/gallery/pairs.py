"""Which two runs a gallery sets side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.report.tables.labels import metric_order
from benchmark.report.tables.select import scores
from benchmark.report.tables.table import NothingToShow

PLACES = 4  # datasets that a gallery goes through


@dataclass(frozen=True)
class Asked:
    """What the user chose; None leaves it to the results."""

    first: str | None = None
    second: str | None = None
    batch_size: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Pair:
    """Two runs that differ in their loss alone, with the score of each."""

    dataset: str
    setting: str
    batch_size: int
    seed: int
    metric: str
    first: str
    second: str
    first_run: str
    second_run: str
    first_score: float
    second_score: float


def pairs(runs: pd.DataFrame, study: Any, asked: Asked) -> list[Pair]:
    """Returns one pair per dataset: the baseline, and the loss with the best mean wherever the baseline ran.

    "Best" is by the study's first metric, over datasets' settings and batch sizes; the pair is taken there, at the
    first common seed. Raises NothingToShow when no two losses have a common run, ConfigError for an unknown loss.
    """
    known = study.losses
    problems = [
        f"--{side}  {unknown_name('loss', name, known)}"
        for side, name in (("first", asked.first), ("second", asked.second))
        if name is not None and name not in known
    ]
    if problems:
        raise ConfigError("gallery", problems)
    values = scores(runs, study)
    metric = metric_order(values["metric"].unique(), study)[0]
    values = values[values["metric"] == metric].drop_duplicates("run_id")
    first = asked.first or study.comparison.baseline or next(iter(known))
    for column, wanted in (("batch_size", asked.batch_size), ("seed", asked.seed)):
        values = values[values[column] == wanted] if wanted is not None else values
    found = [
        pair
        for _, part in values.groupby("dataset", observed=True, sort=False)
        if (pair := _best(part, metric, first, asked.second)) is not None
    ]
    if not found:
        other = asked.second or "any other loss"
        raise NothingToShow(
            f"no seed has finished both for {first} and for {other} under one setting and batch size"
        )
    return found[:PLACES]


def _best(values: pd.DataFrame, metric: str, first: str, second: str | None) -> Pair | None:
    best: tuple[float, Pair] | None = None
    for (setting, size), part in values.groupby(["setting", "batch_size"], observed=True):
        base = part[part["loss"] == first].set_index("seed")
        for loss, rows in part.groupby("loss", observed=True):
            common = base.index.intersection(rows["seed"])
            if loss == first or second not in (None, loss) or common.empty:
                continue
            mean, seed = float(rows["value"].mean()), int(common.min())
            if best is None or mean > best[0]:
                ours, theirs = base.loc[seed], rows.set_index("seed").loc[seed]
                runs = (
                    str(ours["run_id"]),
                    str(theirs["run_id"]),
                    float(ours["value"]),
                    float(theirs["value"]),
                )
                where = (str(values["dataset"].iloc[0]), str(setting), int(size), seed, metric)
                best = (mean, Pair(*where, first, str(loss), *runs))
    return None if best is None else best[1]
