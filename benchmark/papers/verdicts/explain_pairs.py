"""The frozen side of an explained verdict: its raw runs, and the differences seed by seed that the tests rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.verdicts.cells import Side, side
from benchmark.papers.verdicts.frozen import FROZEN
from benchmark.stats.intervals import spread
from benchmark.stats.runs import CELL


def frozen_side(row: dict[str, Any], frozen: pd.DataFrame | None) -> Side | None:
    """Returns the frozen runs that the verdict in ``row`` is about; None for a printed number or without the file."""
    if row["table"] != FROZEN or frozen is None:
        return None
    cell = {name: row[name] for name in CELL if name in row}
    wanted = {**cell, "split": row["split"], "metric": row["metric"], "status": "ok"}
    rows = frozen[(frozen[list(wanted)] == list(wanted.values())).all(axis=1)]
    return side(rows) if len(rows) else None


def frozen_lines(then: Side) -> list[str]:
    """Returns the score of each frozen run, and the code they were made with, in lines."""
    lines = [f"   seed {seed}: {value:.3f}" for seed, value in sorted(then.by_seed.items())]
    return [*lines, f"   (code version {', '.join(then.facts['code_version'])})"]


def pair_lines(row: dict[str, Any], then: Side, now: Side) -> list[str]:
    """Returns the differences by seed with their mean and spread, or why the sides are compared as two groups."""
    if not row["paired_n"] >= 2:
        ours, theirs = (", ".join(map(str, sorted(each.by_seed))) or "none" for each in (now, then))
        if ours != theirs:
            return [f"   two groups, not pairs: our seeds are {ours}, the frozen ones {theirs}"]
        return ["   two groups, not pairs: pairs need two seeds or more"]
    lines, differences = [], []
    for seed, value in sorted(then.by_seed.items()):
        differences.append(now.by_seed[seed] - value)
        lines.append(
            f"   seed {seed}: {now.by_seed[seed]:.3f} - {value:.3f} = {differences[-1]:+.3f}"
        )
    values = np.array(differences)
    return [
        *lines,
        f"   mean {values.mean():+.3f}, sd d = {spread(values):.3f}, n = {len(values)} pairs",
    ]
