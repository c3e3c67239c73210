"""Which two runs and which queries are shown: by rules fixed before anybody had seen them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.seeding import derive
from benchmark.report.inputs import CONDITION, Inputs
from benchmark.report.labels import loss_label
from benchmark.report.records import RunPair, RunSide
from benchmark.report.render.table import NothingToShow
from benchmark.study import Study

GAIN, LOSS, RANDOM, CATEGORY = "largest gain", "largest loss", "random", "category"
REASONS = {
    GAIN: "the queries that the second loss improves most",
    LOSS: "the queries that it worsens most",
    RANDOM: "drawn at random, the same in every gallery of the dataset",
    CATEGORY: "the first query of each of the largest categories not shown yet",
}
EACH = 3  # queries per reason


def choose(
    first: np.ndarray, second: np.ndarray, categories: np.ndarray, each: int = EACH
) -> dict[int, str]:
    """Return {row to show: the reason}, in the order of ``REASONS``.

    ``first`` and ``second`` are the AP (Q,) of each query under the two losses; a row without one
    (NaN) is never shown. A query that does not change is neither a gain nor a loss.
    """
    change = second - first
    usable = np.flatnonzero(np.isfinite(change))
    by_change = usable[np.argsort(change[usable], kind="stable")]
    chosen: dict[int, str] = {}

    def add(rows: Iterable[int], reason: str) -> None:
        new = [int(row) for row in rows if int(row) not in chosen]
        chosen.update(dict.fromkeys(new[:each], reason))

    add((row for row in by_change[::-1][:each] if change[row] > 0), GAIN)
    add((row for row in by_change[:each] if change[row] < 0), LOSS)
    order = np.random.default_rng(derive(0, "gallery", len(first))).permutation(len(first))
    add((row for row in order if np.isfinite(change[row])), RANDOM)
    shown = {int(categories[row]) for row in chosen}
    sizes = dict(zip(*np.unique(categories[usable], return_counts=True), strict=True))
    names = [name for name in sizes if name >= 0 and int(name) not in shown]
    names.sort(key=lambda name: (-sizes[name], name))
    add((usable[categories[usable] == name][0] for name in names), CATEGORY)
    return chosen


DATASETS = 4  # that a gallery goes through


@dataclass(frozen=True)
class Choice:
    """What the user chose; None leaves it to the results."""

    first: str | None = None
    second: str | None = None
    batch_size: int | None = None
    seed: int | None = None


def run_pairs(inputs: Inputs, choice: Choice) -> list[RunPair]:
    """Return one pair per dataset: the baseline, and the loss with the best mean where both ran.

    The mean is that of the headline metric over the seeds of a setting and batch size; the pair is
    taken there, at the first common seed. Raise NothingToShow when no two losses have a common run,
    ConfigError for an unknown loss.
    """
    losses = inputs.study.losses
    problems = [
        f"--{side}  {unknown_name('loss', name, losses)}"
        for side, name in (("first", choice.first), ("second", choice.second))
        if name is not None and name not in losses
    ]
    if problems:
        raise ConfigError("gallery", problems)
    metric, first = inputs.headline, choice.first or inputs.study.comparison.baseline
    scores = inputs.scores[inputs.scores["metric"] == metric].drop_duplicates("run_id")
    for column, wanted in (("batch_size", choice.batch_size), ("seed", choice.seed)):
        scores = scores[scores[column] == wanted] if wanted is not None else scores
    others = scores[scores["loss"] != first]
    if choice.second:
        others = others[others["loss"] == choice.second]
    means = inputs.last[[*CONDITION, "metric", "loss", "mean"]]
    columns = [*CONDITION, "seed", "metric", "run_id", "value", "loss"]
    pairs = others[columns].merge(means, on=[*CONDITION, "metric", "loss"])
    pairs = pairs.merge(
        scores.loc[scores["loss"] == first, columns],
        on=[*CONDITION, "seed", "metric"],
        suffixes=("_second", "_first"),
    )
    if pairs.empty:
        raise NothingToShow(
            f"no seed has finished both for {first} and for {choice.second or 'any other loss'} "
            "under one setting and batch size"
        )
    best = pairs.sort_values(["mean", "seed"], ascending=[False, True], kind="stable")
    best = best.drop_duplicates("dataset").loc[lambda rows: sorted(rows.index)]
    return [_pair(row, inputs.study) for row in best.head(DATASETS).itertuples()]


def _pair(row: Any, study: Study) -> RunPair:
    first, second = (
        RunSide(loss, loss_label(loss, study), run_id, float(score))
        for loss, run_id, score in (
            (row.loss_first, row.run_id_first, row.value_first),
            (row.loss_second, row.run_id_second, row.value_second),
        )
    )
    where = (row.dataset, row.setting, int(row.batch_size), int(row.seed), row.metric)
    return RunPair(*where, first, second)
