"""Made-up trials and final runs of a study at equal budgets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark.runs.table import RunTable
from benchmark.stats.budgets import analyse_budgets

BEST = {"smooth_ap": 0.6, "sup_ap": 0.7, "proxy_anchor": 0.5}
DIVERGED = "proxy_anchor"  # its second trial
TRIALS, FOLDS, SEEDS = 4, 2, (1, 2, 3)


def made_up_trials() -> RunTable:
    """Return trials whose score falls with the distance of the learning rate from its best."""
    rows, scores = [], []
    for number, loss in enumerate(BEST):
        for trial in range(TRIALS + 1):
            for fold in range(FOLDS):
                row = _row(f"glyphs_tiny.fold{fold}", f"trial{trial:02d}", loss, 0)
                row["recipe.optimizer.lr"] = 0.001 * (1 + trial)
                if loss == DIVERGED and trial == 2:
                    row["status"] = "diverged"
                else:
                    value = BEST[loss] - 0.05 * abs(trial - number - 1) + 0.01 * fold
                    scores.append((row["run_id"], "held_out", "last", 1, "map_at_r", value))
                rows.append(row)
    return RunTable.from_rows(rows, scores)


def made_up_finals(rules: tuple[str, ...] = ("authors", "equal1", "equal4")) -> RunTable:
    """Return final runs; more trials give a better score, and every seed its own noise."""
    noise = np.random.default_rng(0)
    rows, scores = [], []
    for loss in BEST:
        for gain, rule in enumerate(rules):
            for seed in SEEDS:
                row = _row("glyphs_tiny", rule, loss, seed)
                value = BEST[loss] + 0.02 * gain + 0.005 * noise.standard_normal()
                rows.append(row)
                scores.append((row["run_id"], "test", "last", 1, "map_at_r", value))
    return RunTable.from_rows(rows, scores)


def made_up_budgets() -> dict[str, pd.DataFrame]:
    """Return the tables of the made-up trials and final runs."""
    return analyse_budgets(made_up_trials(), made_up_finals(), "map_at_r")


def _row(dataset: str, option: str, loss: str, seed: int) -> dict:
    setting = f"test_resnet~{option}"
    return {
        "run_id": f"{dataset}/{setting}/{loss}/bs32/seed{seed}",
        "dataset": dataset,
        "setting": setting,
        "backbone": "test_resnet",
        "options": (option,),
        "loss": loss,
        "base_loss": loss,
        "batch_size": 32,
        "seed": seed,
        "status": "ok",
        "total_seconds": 2.0,
    }
