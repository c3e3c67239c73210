"""Made-up results: long tables with a known truth, studies whose losses differ, trials, cells."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from made_up_records import made_up_recipe

from benchmark.core.recipe import Recipe
from benchmark.core.records import Cell, Setting
from benchmark.published.loading import load_papers
from benchmark.published.vocabulary import OPTIONS
from benchmark.runs.run_table import RUN_COLUMNS, SCORE_COLUMNS, RunTable
from benchmark.stats.budgets import analyse_budgets
from benchmark.study import Block, DatasetChoice, Resources, Study, Variant
from benchmark.study.model import Comparison, References
from benchmark.verdicts.matching import Candidate, StudyGrid

# One row per number of a run, with all that is said of the run.
LONG_COLUMNS = (
    "run_id", "dataset", "setting", "loss", "base_loss", "batch_size", "seed", "status", "split",
    "selection", "epoch", "metric", "value", "spec_digest", "code_version", "platform", "kernels",
    "processor", "reason",
)  # fmt: skip


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
    """Returns finished runs whose scores, in [0, 1], scatter with ``sd`` around the mean of each
    loss."""
    rng = np.random.default_rng(seed)
    rows = []
    cells = [(loss, size) for loss in means for size in batch_sizes]
    for loss, batch_size, number in [(*cell, number) for cell in cells for number in range(seeds)]:
        row = {
            "run_id": f"{dataset}/{setting}/{loss}/bs{batch_size}/seed{number}",
            "dataset": dataset, "setting": setting, "loss": loss, "base_loss": loss,
            "batch_size": batch_size, "seed": number, "status": "ok", "split": split, "epoch": 4,
            "spec_digest": "d", "code_version": "1", "platform": "cpu", "kernels": "portable AVX2",
            "processor": "some", "reason": "",
        }  # fmt: skip
        for metric in metrics:
            value = float(rng.normal(means[loss], sd))
            rows.append({**row, "selection": "last", "metric": metric, "value": value})
            rows.append({**row, "selection": "best", "metric": metric, "value": value + 0.01})
    return pd.DataFrame(rows, columns=list(LONG_COLUMNS))


def write_long(runs: pd.DataFrame, folder: Path) -> None:
    """Write a long table as runs.csv and scores.csv of a study's folder."""
    run_table(runs).write(folder)


def run_table(runs: pd.DataFrame) -> RunTable:
    """Return a long table as the two tables of a study."""
    rows = []
    scores = runs[(runs["metric"].fillna("") != "") & (runs["selection"] != "cost")]
    costs = runs[runs["selection"] == "cost"].groupby("run_id")
    shared = [name for name in LONG_COLUMNS if name in RUN_COLUMNS]
    first = runs.drop_duplicates("run_id")[shared].astype(object)
    for row in first.fillna("").to_dict("records"):
        setting = Setting.from_label(row["setting"])
        row |= {"backbone": setting.backbone, "options": setting.options}
        if row["run_id"] in costs.groups:
            paid = costs.get_group(row["run_id"])
            row |= dict(zip(paid["metric"], paid["value"], strict=True))
        rows.append(row)
    numbers = scores[list(SCORE_COLUMNS)].itertuples(index=False, name=None)
    return RunTable.from_rows(rows, numbers)


def without_number(runs: pd.DataFrame, query: str, status: str) -> pd.DataFrame:
    """Return ``runs`` where those that ``query`` chooses have one row of ``status`` each."""
    rows = runs.eval(query)
    nothing = {"value": np.nan, "metric": "", "selection": "last", "split": "", "epoch": np.nan}
    gone = runs[rows].drop_duplicates("run_id")
    gone = gone.assign(status=status, reason="made up", **nothing)
    return pd.concat([runs[~rows], gone], ignore_index=True)


# mean AP@R at the last epoch, and milliseconds in the loss at batch size 32
LOSSES = {
    "smooth_ap": (0.56, 1.1),
    "sup_ap": (0.58, 1.2),
    "roadmap": (0.585, 1.6),
    "fast_ap": (0.55, 0.7),
    "softbin_ap": (0.54, 0.8),
    "blackbox_ap": (0.53, 0.6),
    "triplet_semihard": (0.52, 0.9),
    "calibration": (0.41, 0.5),
}
METRICS = ("recall_at_1", "map_at_r", "map")
NUMBER = ("split", "selection", "epoch", "metric")


def made_up_block(
    losses: tuple[Variant, ...],
    batch_sizes: tuple[int, ...],
    seeds: tuple[int, ...],
    *,
    name: str = "main",
    setting: str = "r10",
    datasets: tuple[str, ...] = ("glyphs_1k",),
    recipe: Recipe | None = None,
) -> Block:
    """Returns a block whose datasets are registered under their labels."""
    return Block(
        name=name,
        setting=Setting.from_label(setting),
        datasets=tuple(DatasetChoice(each, each, {}) for each in datasets),
        losses=losses,
        batch_sizes=batch_sizes,
        seeds=seeds,
        recipe=recipe or made_up_recipe(),
    )


def made_up_study(
    losses=tuple(LOSSES), batch_sizes=(32, 128), seeds=(0, 1, 2, 3, 4), **changes
) -> Study:
    """Returns a study over one dataset; ``changes`` replace fields."""
    variants = tuple(Variant(loss, loss, {}) for loss in losses)
    block = made_up_block(variants, batch_sizes, seeds)
    fields = {
        "name": "made_up",
        "path": Path("made_up.yaml"),
        "title": "A made-up study",
        "question": "Which loss ranks unseen characters best, and does the batch size matter?",
        "seeds": seeds,
        "blocks": (block,),
        "entries": (),
        "metrics": METRICS,
        "comparison": Comparison("smooth_ap", ("smooth_ap", "sup_ap", "roadmap"), 0.05),
        "tables": None,
        "figures": None,
        "references": References((), None),
        "resources": Resources(0, 1000, 10),
    }
    return Study(**{**fields, **changes})


def made_up_runs(
    study: Study, *, bad: dict[tuple[str, int, int], str] | None = None, epochs=8
) -> pd.DataFrame:
    """Returns the long table; ``bad`` gives the status of (loss, batch size, seed) runs that did
    not finish."""
    rows = []
    reasons = {"diverged": "loss was nan at step 17", "failed": "exit status 1"}
    for block in study.blocks:
        cells = itertools.product(block.datasets, block.losses, block.batch_sizes, block.seeds)
        for dataset, variant, batch_size, seed in cells:
            state = (bad or {}).get((variant.label, batch_size, seed), "ok")
            run = f"{dataset.label}/{block.setting}/{variant.label}/bs{batch_size}/seed{seed}"
            head = {
                "run_id": run, "dataset": dataset.label, "setting": block.setting.label,
                "loss": variant.label, "base_loss": variant.name, "batch_size": batch_size,
                "seed": seed, "status": state, "spec_digest": "0123456789abcdef",
                "code_version": "1.0+abc1234", "platform": "linux-x86_64",
                "kernels": "portable AVX2", "processor": "some",
                "reason": reasons.get(state, ""),
            }  # fmt: skip
            none = [dict.fromkeys(("split", "selection", "metric"), "")]
            found = _measured(variant, batch_size, seed, epochs) if state == "ok" else none
            rows += [{**head, **row} for row in found]
    long = pd.DataFrame(rows, columns=list(LONG_COLUMNS))
    return long.drop_duplicates(["run_id", *NUMBER], ignore_index=True)  # blocks share runs


def _measured(variant: Variant, batch_size: int, seed: int, epochs: int) -> list[dict]:
    level, loss_ms = LOSSES.get(variant.name, (0.5, 1.0))
    shared = np.random.default_rng((seed, batch_size)).normal(0, 0.004)
    letters = sum(map(ord, variant.label))
    own = np.random.default_rng((seed, batch_size, len(variant.label), letters))
    end = level + 0.03 * (batch_size >= 128) + shared
    rows = []
    for metric, shift in zip(METRICS, (0.27, 0.0, 0.06), strict=True):
        growth = 1 - np.exp(-np.arange(1, epochs + 1) / 2.2)
        curve = (end + shift) * growth / growth[-1] + own.normal(0, 0.003, epochs)
        rows += [("test", "curve", epoch, metric, value) for epoch, value in enumerate(curve, 1)]
        rows.append(("test", "last", epochs, metric, curve[-1]))
        best = int(curve.argmax())
        rows.append(("test", "best", best + 1, metric, curve[best]))
    milliseconds = loss_ms * (batch_size / 32) ** 1.3 * own.uniform(0.95, 1.1)
    rate = 900 * own.uniform(0.95, 1.05)
    costs = {
        "train_seconds": 40 * own.uniform(0.95, 1.1),
        "images_per_second": rate,
        "loss_ms": milliseconds,
        "peak_rss_mb": 610.0,
    }
    rows += [("train", "cost", np.nan, metric, value) for metric, value in costs.items()]
    numbers = [dict(zip((*NUMBER, "value"), row, strict=True)) for row in rows]
    return [{**number, "value": round(number["value"], 6)} for number in numbers]


def candidate(
    setting: str = "resnet50",
    loss: str = "smooth_ap",
    base_loss: str = "",
    batch_size: int = 128,
    dataset: str = "sop",
    *,
    by_option: tuple[str, ...] = (),
    by_variant: tuple[str, ...] = (),
    evaluated_on: tuple[str, ...] = (),
    backbone: str = "",
    embedding_dim: int | None = 512,
    **settings: Any,
) -> Candidate:
    """Return a cell; ``settings`` are its columns with "__" for each dot."""
    label = Setting.from_label(setting)
    columns = {name.replace("__", "."): value for name, value in settings.items()}
    width = {"recipe.model.embedding_dim": embedding_dim}
    return Candidate(
        Cell(dataset, label, loss, base_loss or loss, batch_size),
        {"dataset.name": dataset, **width, OPTIONS: label.options, **columns},
        backbone or label.backbone,
        (dataset, *evaluated_on),
        (1, 2, 4, 8, 10),
        frozenset(by_option),
        frozenset(by_variant),
    )


def grid_of(runs: pd.DataFrame, *special: Candidate) -> StudyGrid:
    """Return the cells of a long table as they stand, but for those that are ``special``."""
    plain = {
        cell: candidate(
            cell.setting.label, cell.loss, cell.base_loss, cell.batch_size, cell.dataset
        )
        for cell in run_table(runs).statuses()
    }
    cells = plain | {each.cell: each for each in special}
    return StudyGrid(made_up_study(), load_papers(), (), cells)


BEST = {"smooth_ap": 0.6, "sup_ap": 0.7, "proxy_anchor": 0.5}
DIVERGED = "proxy_anchor"  # its second trial
TRIALS = 4
FOLDS = 2
SEEDS = (1, 2, 3)


def made_up_trials() -> RunTable:
    """Return trials whose score falls with the distance of the learning rate from its best."""
    rows = []
    scores = []
    for number, loss in enumerate(BEST):
        for trial in range(TRIALS + 1):
            for fold in range(FOLDS):
                row = _row(f"glyphs_tiny.fold{fold}", f"trial{trial:02d}", loss, 0)
                row |= {"trials.fold": fold, "trials.trial": trial}
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
    rows = []
    scores = []
    for loss in BEST:
        for gain, rule in enumerate(rules):
            for seed in SEEDS:
                row = _row("glyphs_tiny", rule, loss, seed)
                row["trials.budget"] = int(rule.removeprefix("equal").replace("authors", "0"))
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
        "dataset": dataset, "setting": setting, "backbone": "test_resnet", "options": (option,),
        "loss": loss, "base_loss": loss, "batch_size": 32, "seed": seed, "status": "ok",
        "total_seconds": 2.0, "trials.dataset": "glyphs_tiny", "trials.setting": "test_resnet",
    }  # fmt: skip
