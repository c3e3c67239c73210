"""What the tables of a study cannot hold: rows that contradict each other or themselves."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.cells import CELL_COLUMNS, Cell, Setting
from benchmark.core.records import STATUSES
from benchmark.core.results import COSTS, MOST

SELECTIONS = ("last", "best", "curve")


def contradictions(runs: pd.DataFrame, scores: pd.DataFrame) -> Iterator[str]:
    """Yield what is wrong in the tables of a study, alone or together, in words."""
    if unknown := sorted(set(runs["status"]) - set(STATUSES)):
        yield f"unknown status {', '.join(unknown)}; known: {', '.join(STATUSES)}"
    rows: Any = runs[["run_id", *CELL_COLUMNS, "seed", "backbone", "options"]]
    for row in rows.itertuples(index=False):
        if not _describes_its_run(row):
            yield f"the row of run '{row.run_id}' describes another run"
    if unknown := sorted(set(scores["selection"]) - set(SELECTIONS)):
        yield f"unknown selection {', '.join(unknown)}; known: {', '.join(SELECTIONS)}"
    tested = scores["split"] != "train"
    for row in scores[tested & ~scores["value"].between(0, MOST)].itertuples():
        yield f"the score {row.value} of '{row.run_id}' is not in [0, 1]"
    last = scores[tested & (scores["selection"] == "last")]
    ends = scores["run_id"].map(last.groupby("run_id")["epoch"].max())
    for row in scores[(scores["epoch"] < 0) | (scores["epoch"] > ends)].itertuples():
        yield f"epoch {row.epoch} of '{row.run_id}' is none of its epochs"
    finished = runs.loc[runs["status"] == "ok", "run_id"]
    for run_id in sorted(set(finished) - set(last["run_id"])):
        yield f"run '{run_id}' is ok without a score"
    for run_id in sorted(set(scores["run_id"]) - set(runs["run_id"])):
        yield f"scores of '{run_id}', which is no row of runs.csv"
    for run_id in runs.loc[runs["run_id"].duplicated(), "run_id"]:
        yield f"run '{run_id}' stands in runs.csv twice"
    for loss, bases in runs.groupby("loss")["base_loss"]:
        if bases.nunique() > 1:
            yield f"loss '{loss}' has several base losses"
    costs = runs[[*COSTS]]
    for run_id in runs.loc[((costs < 0) | np.isinf(costs)).any(axis=1), "run_id"]:
        yield f"a cost of run '{run_id}' is negative or infinite"
    # one score a run after its last epoch and at its best one, of a curve one an epoch
    key = scores[["run_id", "split", "selection", "metric"]].assign(
        epoch=scores["epoch"].where(scores["selection"] == "curve", -1)
    )
    for run_id in scores.loc[key.duplicated(), "run_id"]:
        yield f"a score of '{run_id}' stands in scores.csv twice"


def _describes_its_run(row: Any) -> bool:
    """Say whether a row's name and setting are those that its other columns give."""
    setting = Setting(row.backbone, row.options)
    cell = Cell(row.dataset, setting, row.loss, row.base_loss, row.batch_size)
    return (row.run_id, row.setting) == (cell.run_id(row.seed), setting.label)
