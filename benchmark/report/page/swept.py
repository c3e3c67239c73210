"""The sentence on a study's sweeps: which of them make a difference."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables.labels import metric_label
from benchmark.report.tables.numbers import count, points
from benchmark.report.tables.sweep_tests import sweep_tests

NAMED = 8  # sweeps that the sentence names


def sweeps(runs: pd.DataFrame, study: Any) -> list[str]:
    """Returns one sentence: the sweeps with a setting that differs significantly from their default, and that setting.

    Of several such settings of a sweep the one that differs most is given; the table of the sweeps has them all.
    """
    found = sweep_tests(runs, study)
    if found.empty:
        return []
    tested = found[found["p_holm"].notna()]
    if tested.empty:
        return [
            "No sweep could be tested: that takes at least two common seeds of a setting and its default."
        ]
    sure = tested[tested["significant"]]
    largest = sure.loc[sure["difference"].abs().groupby(sure["title"], sort=False).idxmax()]
    parts = [
        f"{row.title} {row.value} ({points(row.difference)} points of {metric_label(row.metric)})"
        for row in largest.sort_index().itertuples()
    ]
    number = count(tested["title"].nunique(), "sweep")
    number += (
        " that could be tested" if tested["title"].nunique() < found["title"].nunique() else ""
    )
    if not parts:
        return [
            f"In none of {number} does a setting differ significantly from the default after Holm's correction."
        ]
    rest = len(parts) - NAMED
    listed = ", ".join([*parts[:NAMED], *([f"and {rest} more"] if rest > 0 else [])])
    return [
        f"In {len(parts)} of {number} some setting differs significantly from the default after Holm's correction; the "
        f"furthest of each: {listed}."
    ]
