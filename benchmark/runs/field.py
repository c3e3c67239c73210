"""The field of a challenger: frozen trials and final runs of other losses."""

from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.runs.run_table import RUN_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import FINAL, TRIALS, field_folder

OF_FIELD = ("loss.", "recipe.optimizer.", "recipe.sampler.", "trials.")  # columns that are kept
SHARED = ["dataset", "setting", "batch_size", "seed"]  # of a run of the study and one of the field


def with_field(table: RunTable, study: Study) -> RunTable:
    """Return the table of a study with the frozen runs of the losses that it does not run.

    Only cells that differ from a cell of the study in the loss alone are added: a study of four
    trials gets the first four trials of the field.
    """
    kind = TRIALS if study.trials else FINAL
    field = RunTable.read(field_folder(study.references.field, kind))
    compared = table.runs[SHARED].drop_duplicates()
    others = field.runs.merge(compared, on=SHARED)
    is_here = others["loss"].isin(table.runs["loss"])
    others = others[~is_here]
    runs = pd.concat([table.runs, others], ignore_index=True).astype(object)
    is_known = runs.notna()
    runs = runs.where(is_known, None).astype(dict(table.runs.dtypes))
    is_added = field.scores["run_id"].isin(others["run_id"])
    scores = pd.concat([table.scores, field.scores[is_added]], ignore_index=True)
    return RunTable(runs, scores)


def freeze_field(trials: RunTable, final: RunTable, metric: str, folder: Path) -> int:
    """Write both tables below ``folder``; return the number of runs.

    Raise ReferenceDataError if a run has no result, because nobody would notice it later.
    """
    for name, table in ((TRIALS, trials), (FINAL, final)):
        runs = table.runs
        has_result = runs["status"].isin(["ok", "diverged"])
        holes = runs[~has_result]
        if len(holes):
            raise ReferenceDataError(
                f"{len(holes)} runs have no result (first: {holes['run_id'].iloc[0]}), nothing was "
                "frozen; run the study to its end first"
            )
        settings = [column for column in runs.columns if column.startswith(OF_FIELD)]
        is_last = table.scores["selection"] == "last"
        is_headline = table.scores["metric"] == metric
        scores = table.scores[is_last & is_headline]
        kept = RunTable(runs[[*RUN_COLUMNS, *settings]], scores)
        kept.write(folder / name)
    return len(trials.runs) + len(final.runs)
