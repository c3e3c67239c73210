"""Frozen runs of other losses (the field), which a study of one loss is compared with.

They are the two tables of runs of a study with rules: ``trials`` and ``final``, each a folder. Only
what statistics need is kept: settings that trials vary, costs, and last scores of its metrics.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.runs.table import RUN_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.format import ROOT

TRIALS, FINAL = "trials", "final"
VARIED = ("loss.", "recipe.optimizer.", "recipe.sampler.")


def with_field(table: RunTable, study: Study) -> RunTable:
    """Return the table of a study with the frozen runs of the losses that it does not run.

    Only cells that differ from the study's in the loss alone join: a study of four trials meets the
    first four trials of the field.
    """
    folder = Path(str(study.references.field))
    folder = (folder if folder.is_dir() else ROOT / folder) / (TRIALS if study.trials else FINAL)
    field = RunTable.read(folder)
    here = ["dataset", "setting", "batch_size", "seed"]
    others = field.runs.merge(table.runs[here].drop_duplicates(), on=here)
    others = others[~others["loss"].isin(table.runs["loss"])]
    runs = pd.concat([table.runs, others], ignore_index=True).astype(object)
    runs = runs.where(runs.notna(), None).astype(dict(table.runs.dtypes))
    scores = field.scores[field.scores["run_id"].isin(others["run_id"])]
    return RunTable(runs, pd.concat([table.scores, scores], ignore_index=True))


def freeze_field(trials: RunTable, final: RunTable, metric: str, folder: Path) -> int:
    """Write both tables below ``folder``; return the number of runs.

    Raise ReferenceDataError where a run has no result: nobody would see the hole later.
    """
    for name, table in ((TRIALS, trials), (FINAL, final)):
        holes = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
        if len(holes):
            raise ReferenceDataError(
                f"{len(holes)} runs have no result (first: {holes['run_id'].iloc[0]}), nothing was "
                "frozen; run the study to its end first"
            )
        kept = [str(each) for each in table.runs if str(each).startswith(VARIED)]
        last = (table.scores["selection"] == "last") & (table.scores["metric"] == metric)
        RunTable(table.runs[[*RUN_COLUMNS, *kept]], table.scores[last]).write(folder / name)
    return len(trials.runs) + len(final.runs)
