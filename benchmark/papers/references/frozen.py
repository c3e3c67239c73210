"""Frozen references: the raw headline scores of a study's runs, kept with the repository.

Every single value is kept, never only a mean, so that a later comparison has both spreads. The file has
one row per run, split and metric, scores in [0, 1]; a diverged run has one row without a value.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_text
from benchmark.papers.references.reading import (
    check_choices,
    check_numbers,
    check_unique,
    problem,
    read_table,
)
from benchmark.stats.runs import CELL, attempts, checked, scores

COLUMNS = (
    "dataset", "setting", "loss", "base_loss", "batch_size", "seed", "status", "split", "metric", "value",
    "spec_digest", "code_version", "platform",
)  # fmt: skip
_SHOWN = 5


def load_frozen(path: Path) -> pd.DataFrame:
    """Returns the frozen runs at ``path``, typed; raises ReferenceDataError naming file, line and column."""
    path = Path(path)
    table = read_table(path, COLUMNS)
    check_choices(path, table, "status", ("ok", "diverged"))
    for column in ("batch_size", "seed"):
        table[column] = check_numbers(path, table, column, integer=True, required=True).astype(int)
    table["value"] = check_numbers(path, table, "value", integer=False, required=False).astype(
        float
    )
    ok = table["status"] == "ok"
    wrong = table[(ok & ~table["value"].between(0, 1)) | (~ok & table["value"].notna())]
    if len(wrong):
        raise problem(
            path,
            wrong["line"].iloc[0],
            "value",
            "a finished run has a score from 0 to 1, a diverged run none",
        )
    check_unique(path, table, [*CELL, "seed", "split", "metric"])
    if table.empty:
        raise ReferenceDataError(
            f"{path} holds no runs; write it again with 'python -m benchmark freeze STUDY'"
        )
    return table.drop(columns="line")


def freeze(
    runs: pd.DataFrame, path: Path, *, metrics: list[str] | None = None, partial: bool = False
) -> int:
    """Writes the headline scores of ``runs`` to ``path`` and returns the number of runs frozen.

    Runs that are missing, failed or stale would leave holes that nobody sees later: they are refused, with
    their names, unless ``partial``. A diverged run is a result and is kept as such.
    """
    runs = checked(runs)
    tried = attempts(runs)
    holes = tried[~tried["status"].isin(["ok", "diverged"])]
    if len(holes) and not partial:
        shown = [
            f"  {row.dataset}/{row.setting}/{row.loss}/bs{row.batch_size}/seed{row.seed}: {row.status}"
            for row in holes.head(_SHOWN).itertuples()
        ]
        more = [f"  and {len(holes) - _SHOWN} more"] if len(holes) > _SHOWN else []
        raise ReferenceDataError(
            "\n".join(
                [
                    f"{len(holes)} of {len(tried)} runs have no result, nothing was frozen:",
                    *shown,
                    *more,
                    "run the study to its end first, or accept the holes with --partial",
                ]
            )
        )
    found = scores(runs, "last", metrics)
    diverged = runs[runs["status"] == "diverged"].drop_duplicates([*CELL, "seed"])
    diverged = diverged.assign(split="", metric="", value=float("nan"))
    table = pd.concat([found, diverged])[list(COLUMNS)].sort_values(
        [*CELL, "seed", "split", "metric"]
    )
    if table.empty:
        raise ReferenceDataError(
            "no finished run has a score, nothing was frozen; run the study first"
        )
    write_text(Path(path), table.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(table.drop_duplicates([*CELL, "seed"]))
