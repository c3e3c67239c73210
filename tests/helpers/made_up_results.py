"""A made-up study with realistic results: losses that differ, matched seeds, and runs that went
wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from long_tables import LONG_COLUMNS
from made_up_records import made_up_recipe

from benchmark.core.recipe import Recipe
from benchmark.core.records import Setting
from benchmark.study import Block, DatasetChoice, Resources, Study, Variant
from benchmark.study.model import Comparison, References

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
    for block in study.blocks:
        for dataset in block.datasets:
            for variant in block.losses:
                for batch_size in block.batch_sizes:
                    for seed in block.seeds:
                        state = (bad or {}).get((variant.label, batch_size, seed), "ok")
                        head = {
                            "run_id": f"{dataset.label}/{block.setting}/{variant.label}/"
                            f"bs{batch_size}/seed{seed}",
                            "dataset": dataset.label,
                            "setting": block.setting.label,
                            "loss": variant.label,
                            "base_loss": variant.name,
                            "batch_size": batch_size,
                            "seed": seed,
                            "status": state,
                            "spec_digest": "0123456789abcdef",
                            "code_version": "1.0+abc1234",
                            "platform": "linux-x86_64",
                            "reason": {
                                "diverged": "loss was nan at step 17",
                                "failed": "exit status 1",
                            }.get(state, ""),
                        }
                        if state == "ok":
                            rows.extend(
                                {**head, **row}
                                for row in _measured(variant, batch_size, seed, epochs)
                            )
                        else:
                            rows.append({**head, "split": "", "selection": "", "metric": ""})
    long = pd.DataFrame(rows, columns=list(LONG_COLUMNS))
    return long.drop_duplicates(["run_id", *NUMBER], ignore_index=True)  # blocks share runs


def _measured(variant: Variant, batch_size: int, seed: int, epochs: int) -> list[dict]:
    level, loss_ms = LOSSES.get(variant.name, (0.5, 1.0))
    shared = np.random.default_rng((seed, batch_size)).normal(0, 0.004)
    own = np.random.default_rng(
        (seed, batch_size, len(variant.label), sum(map(ord, variant.label)))
    )
    end = level + 0.03 * (batch_size >= 128) + shared
    rows = []
    for metric, shift in zip(METRICS, (0.27, 0.0, 0.06), strict=True):
        growth = 1 - np.exp(-np.arange(1, epochs + 1) / 2.2)
        curve = (end + shift) * growth / growth[-1] + own.normal(0, 0.003, epochs)
        for epoch, value in enumerate(curve, start=1):
            rows.append(_row("test", "curve", epoch, metric, value))
        rows.append(_row("test", "last", epochs, metric, curve[-1]))
        best = int(curve.argmax())
        rows.append(_row("test", "best", best + 1, metric, curve[best]))
    milliseconds = loss_ms * (batch_size / 32) ** 1.3 * own.uniform(0.95, 1.1)
    rate = 900 * own.uniform(0.95, 1.05)
    for metric, value in (
        ("train_seconds", 40 * own.uniform(0.95, 1.1)),
        ("images_per_second", rate),
        ("loss_ms", milliseconds),
        ("peak_rss_mb", 610.0),
    ):
        rows.append(_row("train", "cost", np.nan, metric, value))
    return rows


def _row(split: str, selection: str, epoch: int, metric: str, value: float) -> dict:
    return {
        "split": split,
        "selection": selection,
        "epoch": epoch,
        "metric": metric,
        "value": round(value, 6),
    }
