"""Judging a study: one row per reference number, with everything that its verdict rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from benchmark.papers.references.margins import margin_of
from benchmark.papers.verdicts.cells import Cells
from benchmark.papers.verdicts.decide import decide
from benchmark.papers.verdicts.frozen import frozen_rows
from benchmark.papers.verdicts.matching import Facts, match_published
from benchmark.stats.runs import checked

COLUMNS = [
    "source",  # key of the paper, or "frozen"
    "table",  # the paper's table, or "frozen"
    "row_label",  # the row as printed
    "provenance",  # own, retrained; frozen
    "dataset",
    "setting",  # of our runs; empty when none belongs to the reference
    "backbone",  # as the reference states it
    "embedding_dim",
    "loss",  # label of our variant, or the reference's loss when none belongs to it
    "batch_size",
    "split",
    "metric",
    "published_value",  # as printed, in published_unit; empty for frozen references
    "published_unit",
    "reference_mean",  # percentage points from here on
    "reference_sd",
    "reference_n",  # empty where the paper states none: then it counts as one draw
    "ours_mean",
    "ours_sd",
    "ours_n",
    "n_diverged",
    "selection",
    "paired_n",  # seeds compared one by one (frozen references); empty when the sides are two groups
    "difference",  # ours - reference
    "se",
    "df",
    "ci90_low",
    "ci90_high",
    "margin",
    "rounding",
    "p_equivalence",
    "p_drift",
    "p_holm",
    "family_size",  # tests in the Holm family, which is the table
    "verdict",
    "direction",  # of a drift: low or high
    "reason",
    "seeds_to_decide",  # seeds of ours that would decide, if difference and spread stay as they are
]


@dataclass(frozen=True)
class References:
    """Rows of ``benchmark.papers.references.asked_results`` and of ``load_frozen``; either may be None."""

    published: pd.DataFrame | None = None
    frozen: pd.DataFrame | None = None


def judge(
    runs: pd.DataFrame,
    references: References,
    margins: Mapping[str, float],
    *,
    selection: str = "last",
    facts: Facts | None = None,
) -> pd.DataFrame:
    """Returns the verdicts (``COLUMNS``) on all numbers of ``references``.

    ``runs`` is the long table; ``margins`` maps metrics or patterns to percentage points; ``facts`` maps
    (dataset, setting) to {"backbone", "embedding_dim"} for matching published rows. ``selection`` "best" judges
    under the papers' own rule (best test epoch); frozen references are judged under "last" only.
    """
    runs = checked(runs)
    cells = Cells(runs, selection)
    rows = []
    if references.published is not None:
        rows += [
            _published_row(row, cells, facts or {})
            for row in references.published.to_dict("records")
        ]
    if references.frozen is not None and selection == "last":
        rows += frozen_rows(references.frozen, cells)
    for row in rows:
        margin = margin_of(row["metric"], margins)
        row["margin"] = float("nan") if margin is None else margin
    return (
        decide(pd.DataFrame(rows)).reindex(columns=COLUMNS)
        if rows
        else pd.DataFrame(columns=COLUMNS)
    )


def _published_row(row: dict, cells: Cells, facts: Facts) -> dict:
    result = {
        "source": row["paper"],
        "table": row["table"],
        "row_label": row["row_label"],
        "provenance": row["provenance"],
        "dataset": row["dataset"],
        "setting": "",
        "backbone": row["backbone"],
        "embedding_dim": row["embedding_dim"],
        "loss": row["loss"],
        "batch_size": row["batch_size"],
        "split": row["protocol"],
        "metric": row["metric"],
        "published_value": row["value"],
        "published_unit": row["unit"],
        "reference_mean": row["points"],
        "reference_sd": row["sd_points"],
        "reference_n": row["n_runs"],
        "selection": cells.selection,
        "rounding": row["rounding"],
    }
    if not row["score"]:
        return {**result, "note": "not a retrieval score of a whole test set: not judged"}
    match = match_published(row, cells.all, cells.splits, facts)
    if match.cell is None:
        return {**result, "note": match.reason}
    return {**result, **our_side(cells, match.cell, match.split, row["metric"])}


def our_side(cells: Cells, cell: tuple, split: str, metric: str) -> dict:
    """Returns the columns that our runs of one cell contribute to a verdict."""
    ours = cells.side(cell, split, metric)
    pooled_sd, pooled_df = cells.pooled(cell, split, metric)
    return {
        "setting": cell[1],
        "loss": cell[2],
        "batch_size": cell[4],
        "split": split,
        "ours_mean": ours.mean,
        "ours_sd": ours.sd,
        "ours_n": ours.n,
        "pooled_sd": pooled_sd,
        "pooled_df": pooled_df,
        "statuses": cells.statuses.get(cell, {}),
    }
