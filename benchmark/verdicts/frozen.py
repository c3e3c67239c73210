"""Frozen runs: the raw headline scores of a study's runs, kept with the repository.

Every single value is kept, never only a mean, so that a later comparison has both spreads. The file
has one row per run, split and metric, with scores in [0, 1]. A diverged run has one row without a
value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import nan
from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_text
from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.core.words import one_a_line
from benchmark.runs.run_table import RunTable
from benchmark.stats.samples import VERSIONS, Sample, Score, samples_of, with_spreads

FROZEN_COLUMNS = [*CELL_COLUMNS, "seed", "status", "split", "metric", "value", *VERSIONS]
_SHOWN = 5
# By cell, split and metric. If all runs of a cell diverged, split and metric are "".
FrozenRuns = Mapping[Score, Sample]


def load_frozen(path: Path) -> FrozenRuns:
    """Return the frozen scores at ``path``."""
    rows = pd.read_csv(path, dtype="str", keep_default_na=False)
    rows = rows.reindex(columns=FROZEN_COLUMNS, fill_value="")
    rows["value"] = rows["value"].replace("", "nan").astype(float)
    samples = samples_of(rows)
    scored = {cell for (cell, _, _), sample in samples.items() if sample.n}
    diverged = rows[rows["status"] == "diverged"].drop_duplicates([*CELL_COLUMNS, "seed"])
    counts = Counter(map(Cell.of, diverged[list(CELL_COLUMNS)].to_numpy()))
    frozen = {}
    for key, sample in sorted(samples.items()):
        cell, _, _ = key
        if sample.n or cell not in scored:
            frozen[key] = replace(sample, diverged=counts[cell])
    return with_spreads(frozen)


def freeze(
    table: RunTable, path: Path, *, metrics: list[str] | None = None, partial: bool = False
) -> int:
    """Write the headline scores of ``table`` to ``path``; return the number of runs frozen.

    A run that is missing, failed or stale would leave a hole that nobody sees later. ``freeze``
    names such runs and raises ReferenceDataError, unless ``partial``. A diverged run is a result.
    """
    runs = table.runs
    status = runs["status"]
    holes = runs[~status.isin(["ok", "diverged"])]
    if len(holes) and not partial:
        named = (holes["run_id"] + ": " + holes["status"]).tolist()
        raise ReferenceDataError(
            f"{len(holes)} of {len(runs)} runs have no result, nothing was frozen:"
            f"{one_a_line(named, _SHOWN)}\n"
            "run the study to its end first, or accept the holes with --partial"
        )
    facts = runs[["run_id", "status", *VERSIONS]]
    scores = table.test_scores("last", metrics).merge(facts, on="run_id")
    diverged = runs[status == "diverged"].assign(split="", metric="", value=nan)
    frozen = pd.concat([scores, diverged])[FROZEN_COLUMNS]
    if frozen.empty:
        raise ReferenceDataError(
            "no finished run has a score, nothing was frozen; run the study first"
        )
    frozen = frozen.sort_values([*CELL_COLUMNS, "seed", "split", "metric"])
    write_text(path, frozen.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(frozen.drop_duplicates([*CELL_COLUMNS, "seed"]))
