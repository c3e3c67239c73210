"""The scores of trials on held-out training classes, and the settings that they choose."""

import pandas as pd

from benchmark.core.cells import Setting
from benchmark.core.errors import RunError
from benchmark.runs.table import RunTable
from benchmark.study.model import Study
from benchmark.study.trials.grid import FOLD, trial_of
from benchmark.study.trials.selection import Choice, Selection

NAMED = "'references.trials' names a study with 'rules', which make trials"
PLACE = ["dataset", "setting", "batch_size", "loss"]  # of a table of trials


def trial_scores(table: RunTable, metric: str) -> pd.DataFrame:
    """Return the score of every trial: a row per dataset, setting, batch size, loss and trial.

    Columns are (fold, seed). ``setting`` is that of the blocks as written. A run without a score
    (diverged) leaves NaN.
    """
    scores = table.test_scores("last", [metric])
    runs = table.attempts().merge(
        scores.drop(columns=["run_id", "epoch"]), how="left",
        on=["dataset", "setting", "loss", "base_loss", "batch_size", "seed"],
    )  # fmt: skip
    whole = runs["dataset"].str.rpartition(FOLD)
    if len(other := runs[whole[1] != FOLD]):
        raise RunError(f"runs on '{other['dataset'].iloc[0]}' are no trials on a fold; {NAMED}")
    runs = with_trials(runs).assign(dataset=whole[0], fold=whole[2].astype(int))
    index = [*PLACE, "trial"]
    return runs.pivot(index=index, columns=["fold", "seed"], values="value").sort_index()


def with_trials(runs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of runs with ``trial``, their number, and ``setting`` as the blocks have it.

    Raise RunError for a run that is no trial.
    """
    try:
        trials = [trial_of(Setting.from_label(label)) for label in runs["setting"]]
    except ValueError as error:
        raise RunError(f"{error}; {NAMED}") from error
    return runs.assign(trial=trials, setting=runs["setting"].map(plain))


def plain(setting: str) -> str:
    """Return the setting of the block as written, "x" of "x~equal16"."""
    found = Setting.from_label(setting)
    return Setting(found.backbone, found.options[:-1]).label


def select(study: Study, table: RunTable) -> Selection:
    """Return the best setting of each loss after each number of trials of ``study``.

    The published setting is chosen from no trial. Raise RunError when a trial has no result.
    """
    assert study.trials is not None
    absent = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
    if len(absent):
        raise RunError(
            f"{len(absent)} of {len(table.runs)} trials of study '{study.name}' have no result "
            f"(first: {absent['run_id'].iloc[0]}); run the study again before choosing"
        )
    means = trial_scores(table, study.metrics[0]).mean(axis=1, skipna=False)
    overrides = {
        (block.name, loss.label, trial_of(block.setting)): block.overrides
        for block in study.blocks
        for loss in block.losses
    }
    choices = []
    for block, dataset, size, loss, budget in study.trials.choices:
        scores = means.loc[dataset, block.setting.label, size, loss]
        trial = best_trial(scores, budget)
        score = None if pd.isna(scores[trial]) else float(scores[trial])
        override = overrides[block.name, loss, trial]
        choices.append(Choice(block.name, dataset, size, loss, budget, trial, score, override))
    return Selection.of(study, choices)


def best_trial(scores: pd.Series, budget: int) -> int:
    """Return the best of the first ``budget`` trials, which start at 1; 0 for a budget of none.

    A trial without a score is worse than any other; the earlier of two equal ones is taken.
    """
    drawn = scores.loc[1:budget].fillna(-1.0)
    return int(drawn.to_numpy().argmax()) + 1 if budget else 0
