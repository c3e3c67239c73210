"""The frozen side of a verdict: raw runs of an earlier time, cell by cell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark.papers.verdicts.cells import Cells, Side, side
from benchmark.stats.intervals import spread
from benchmark.stats.runs import CELL

FROZEN = "frozen"


def frozen_rows(frozen: pd.DataFrame, cells: Cells) -> list[dict]:
    """Returns one row per frozen cell, split and metric, with our side where there is one."""
    rows = []
    for key, group in frozen[frozen["status"] == "ok"].groupby(
        [*CELL, "split", "metric"], sort=True
    ):
        cell, split, metric = key[: len(CELL)], key[-2], key[-1]
        then = side(group)
        row = {
            "source": FROZEN,
            "table": FROZEN,
            "row_label": "/".join(str(part) for part in cell[:3]),
            "provenance": FROZEN,
            **dict(zip(CELL, cell, strict=True)),
            "backbone": cell[1].split("~")[0],
            "split": split,
            "metric": metric,
            "reference_mean": then.mean,
            "reference_sd": then.sd,
            "reference_n": then.n,
            "selection": cells.selection,
            "rounding": 0.0,
        }
        if cell in cells.statuses:
            pooled_sd, pooled_df = cells.pooled(cell, split, metric)
            now = cells.side(cell, split, metric)
            row |= {
                "ours_mean": now.mean,
                "ours_sd": now.sd,
                "ours_n": now.n,
                "pooled_sd": pooled_sd,
                "pooled_df": pooled_df,
                **paired(then, now),
                "statuses": cells.statuses[cell],
                "remark": changes(then, now),
            }
        else:
            row["note"] = "the frozen cell is not in this study's runs"
        rows.append(row)
    return rows


def paired(then: Side, now: Side) -> dict[str, float]:
    """Returns number and spread of the differences by seed, when both sides have the same two seeds or more.

    A run and its frozen counterpart share split, initial weights, batches and augmentation, so that what the seed
    adds to both drops out of their difference.
    """
    if len(now.by_seed) < 2 or set(then.by_seed) != set(now.by_seed):
        return {}
    differences = np.array(
        [now.by_seed[seed] - value for seed, value in sorted(then.by_seed.items())]
    )
    return {"paired_n": len(differences), "paired_sd": spread(differences)}


def changes(then: Side, now: Side) -> str:
    """Returns what differs between the two sides besides the scores, as text; "" for nothing."""
    names = {"spec_digest": "specification", "code_version": "code version", "platform": "platform"}
    parts = []
    for key, name in names.items():
        if then.facts and now.facts and set(then.facts[key]) != set(now.facts[key]):
            shown = (
                ""
                if key == "spec_digest"
                else f" ({', '.join(then.facts[key])}; now {', '.join(now.facts[key])})"
            )
            parts.append(f"{name} differs{shown}")
    return "; ".join(parts)
