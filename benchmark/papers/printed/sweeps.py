"""The numbers behind the sweeps: each value's score, and its paired test against the default."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.library import sweep_figures
from benchmark.papers.printed.grid import Grid, Line
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import against_default
from benchmark.stats.samples import NO_RUNS, Sample
from benchmark.study.documents import JOINT


@dataclass(frozen=True)
class SweptValue:
    """One value of a sweep: its score in [0, 1], and its test against the default of the sweep.

    title, option  of the sweep: "SupAP's slope", "slope ρ"
    batch_size     None where it is swept
    claims         names of the papers' claims about the sweep
    value          as printed; "" for the ``loss`` that is drawn beside a sweep
    is_default     whether the others are compared with it: then it has no test
    """

    title: str
    option: str
    metric: str
    batch_size: int | None
    claims: tuple[str, ...]
    loss: str
    value: str
    is_default: bool
    score: float
    score_sd: float | None
    score_n: int
    n: int | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    d_z: float | None
    detectable: float | None
    note: str
    p_holm: float | None
    significant: bool


_TESTED = [item.name for item in fields(SweptValue)][-10:]  # of the test


def swept_values(grid: Grid) -> list[SweptValue]:
    """Return the values of the sweeps that belong to a study, in the order of its figures.

    A sweep with a single value that has runs is none. Holm's families are the values of one sweep
    each.
    """
    name = grid.study.name.partition(JOINT)[0]
    sweeps = [
        _sweep(Line(grid, panel, test_set, load_vocabulary()))
        for figure in sweep_figures()
        if figure.kind == "sweep" and name in figure.studies
        for panel in figure.panels
        for test_set in panel.test_sets
    ]
    return [value for sweep in sweeps if len(sweep) > 1 for value in sweep]


def _sweep(line: Line) -> list[SweptValue]:
    panel, samples, default = line.panel, line.by_x(), line.default()
    entries = [(panel.loss, line.text(x), x == default, sample) for x, sample in samples.items()]
    if (beside := line.baseline()).n:
        entries.append((panel.baseline, "", False, beside))
    if not entries:
        return []
    plain = NO_RUNS if default is None else samples.get(default, NO_RUNS)
    tests = _tests([entry[-1] for entry in entries], plain, line.grid)
    values = []
    for (loss, value, is_default, sample), test in zip(entries, tests, strict=True):
        summary = t_interval([score / 100 for score in sample.by_seed.values()])
        values.append(
            SweptValue(
                title=panel.title,
                option=panel.label or panel.x.replace("_", " "),
                metric=panel.metric,
                batch_size=panel.batch_size,
                claims=panel.claims,
                loss=loss,
                value=value,
                is_default=is_default,
                score=summary.mean,
                score_sd=None if np.isnan(summary.sd) else summary.sd,
                score_n=summary.n,
                **test,
            )
        )
    return values


def _tests(samples: Sequence[Sample], default: Sample, grid: Grid) -> list[dict[str, Any]]:
    """Return the test of each sample against the default; none for the default itself."""
    scores = [{seed: value / 100 for seed, value in each.by_seed.items()} for each in samples]
    against = {seed: value / 100 for seed, value in default.by_seed.items()}
    tests = against_default(scores, against, grid.study.comparison.alpha)[_TESTED]
    rows = tests.astype({"n": "Int64"}).astype(object).to_dict("records")
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in rows
    ]
