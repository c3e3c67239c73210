"""Cells of a grid that no study file asks for, as published numbers and claims are matched with."""

from __future__ import annotations

from typing import Any

import pandas as pd
from long_tables import run_table

from benchmark.core.records import Cell, Setting
from benchmark.papers.matching import Candidate, Candidates
from benchmark.papers.vocabulary import OPTIONS


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
    return Candidate(
        Cell(dataset, label, loss, base_loss or loss, batch_size),
        {
            "dataset.name": dataset,
            "recipe.model.embedding_dim": embedding_dim,
            OPTIONS: label.options,
            **columns,
        },
        frozenset(by_option),
        frozenset(by_variant),
        backbone or label.backbone,
        (dataset, *evaluated_on),
        (1, 2, 4, 8, 10),
    )


def candidates_of(runs: pd.DataFrame, *special: Candidate) -> Candidates:
    """Return the cells of a long table as they stand, but for those that are ``special``."""
    plain = {
        cell: candidate(
            cell.setting.label, cell.loss, cell.base_loss, cell.batch_size, cell.dataset
        )
        for cell in run_table(runs).cells()
    }
    return plain | {each.cell: each for each in special}
