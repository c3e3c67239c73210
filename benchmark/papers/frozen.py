"""Frozen runs: the raw headline scores of a study's runs, kept with the repository.

Every single value is kept, never only a mean, so that a later comparison has both spreads. Their
file has one row per run, split and metric, scores in [0, 1]; a diverged run has one row without a
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_text
from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.runs.run_table import RunTable
from benchmark.stats.samples import VERSIONS, Sample, Score, with_spreads

FROZEN_COLUMNS = [*CELL_COLUMNS, "seed", "status", "split", "metric", "value", *VERSIONS]
_SHOWN = 5
# By cell, split and metric; a cell whose runs all diverged has one entry without these names.
FrozenRuns = Mapping[Score, Sample]


def load_frozen(path: Path) -> FrozenRuns:
    """Return the frozen scores at ``path``."""
    rows = pd.read_csv(path, dtype="str", keep_default_na=False)
    rows = rows.reindex(columns=FROZEN_COLUMNS, fill_value="")
    lost = rows[rows["status"] == "diverged"].groupby(list(CELL_COLUMNS))["seed"].nunique()
    samples = {}
    for key, group in rows.groupby([*CELL_COLUMNS, "split", "metric"]):
        *columns, split, metric = map(str, key)
        values = group[group["value"] != ""].set_index("seed")["value"]
        by_seed = {int(str(seed)): 100 * float(value) for seed, value in values.items()}
        versions = {}
        for name in VERSIONS:
            versions[name] = tuple(sorted({*group[name]} - {""}))
        diverged = int(lost.get(tuple(columns), 0))
        samples[Cell.of(columns), split, metric] = Sample(by_seed, versions, diverged)
    scored = {cell for (cell, _, _), sample in samples.items() if sample.n}
    kept = {}
    for key, sample in sorted(samples.items()):
        if sample.n or key[0] not in scored:
            kept[key] = sample
    return with_spreads(kept)


def freeze(
    table: RunTable, path: Path, *, metrics: list[str] | None = None, partial: bool = False
) -> int:
    """Write the headline scores of ``table`` to ``path``; return the number of runs frozen.

    Runs that are missing, failed or stale would leave holes that nobody sees later. ``freeze``
    refuses them and names them, unless ``partial``. A diverged run is a result and is kept as such.
    """
    runs = table.runs
    holes = runs[~runs["status"].isin(["ok", "diverged"])]
    if len(holes) and not partial:
        shown = [f"  {row.run_id}: {row.status}" for row in holes.head(_SHOWN).itertuples()]
        if len(holes) > _SHOWN:
            shown.append(f"  and {len(holes) - _SHOWN} more")
        words = f"{len(holes)} of {len(runs)} runs have no result, nothing was frozen:"
        advice = "run the study to its end first, or accept the holes with --partial"
        raise ReferenceDataError("\n".join([words, *shown, advice]))
    about = runs[["run_id", "status", *VERSIONS]]
    scores = table.test_scores("last", metrics).merge(about, on="run_id")
    diverged = runs[runs["status"] == "diverged"].assign(split="", metric="", value=nan)
    order = [*CELL_COLUMNS, "seed", "split", "metric"]
    frozen = pd.concat([scores, diverged])[FROZEN_COLUMNS].sort_values(order)
    if frozen.empty:
        words = "no finished run has a score, nothing was frozen; run the study first"
        raise ReferenceDataError(words)
    write_text(path, frozen.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(frozen.drop_duplicates([*CELL_COLUMNS, "seed"]))
