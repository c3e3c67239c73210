"""The numbers behind the sweeps: each swept setting with its score, and its paired test against the sweep's default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.report.figures.papers.arrangement import Panel, Place, sweep_figures
from benchmark.report.figures.papers.points import Points, in_words, x_of
from benchmark.report.tables.labels import loss_label
from benchmark.stats.intervals import t_interval
from benchmark.stats.multiple import holm
from benchmark.stats.paired import paired_tests
from benchmark.study.stand_in import JOINT


def sweep_tests(runs: pd.DataFrame, study: Any) -> pd.DataFrame:
    """Returns one row per swept setting that has finished runs, in the order of the figures; empty for other studies.

    ``title``, ``option``   of the sweep: "SupAP's slope", "slope ρ"; ``metric``, ``batch_size`` (NaN: it is swept)
    ``claims``              names of the papers' claims about the sweep
    ``value``               as printed: "0.05", "random classes", "SmoothAP alone" for the loss drawn beside a sweep
    ``default``             whether it is the setting that the others are compared with
    ``score``, ``score_sd`` mean and standard deviation over ``score_n`` seeds, in [0, 1]
    and the columns of a test (``benchmark.stats.paired``) with ``p_holm``, corrected over the settings of one sweep,
    and ``significant``; NaN for the default itself.
    """
    points = Points(runs, study)
    parts = [
        _sweep(panel, place, points)
        for figure in sweep_figures()
        if figure.kind == "sweep" and study.name.partition(JOINT)[0] in figure.studies
        for panel in figure.panels
        for place in panel.series
    ]
    found = [part for part in parts if len(part) > 1]  # a single setting is no sweep
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _sweep(panel: Panel, place: Place, points: Points) -> pd.DataFrame:
    by_x = points.rows_by_x(panel, place, panel.loss, x_of(panel))
    default = points.plain_x(panel, place, x_of(panel))
    entries = [(_value(panel, x), x == default, rows) for x, rows in by_x.items()]
    if panel.baseline:
        cells = points.cells(panel, place, panel.baseline)
        plain = [points.values(cell, place, panel.metric) for cell in cells if not cell.variant.own]
        entries += [
            (f"{loss_label(panel.baseline, points.study)} alone", False, rows)
            for rows in plain[:1]
            if len(rows)
        ]
    if not entries:
        return pd.DataFrame()
    scores = [rows.set_index("seed")["value"] for _, _, rows in entries]
    summaries = [t_interval(each) for each in scores]
    head = {
        "title": panel.title,
        "option": panel.label or panel.x.replace("_", " "),
        "metric": panel.metric,
        "batch_size": panel.batch_size,
        "claims": [panel.claims] * len(entries),
        "value": [value for value, _, _ in entries],
        "default": [is_default for _, is_default, _ in entries],
        "score": [each.mean for each in summaries],
        "score_sd": [each.sd for each in summaries],
        "score_n": [each.n for each in summaries],
    }
    return pd.concat([pd.DataFrame(head), _tests(scores, by_x.get(default), points.alpha)], axis=1)


def _tests(scores: list[pd.Series], default: pd.DataFrame | None, alpha: float) -> pd.DataFrame:
    """Returns the tests of each of ``scores`` (by seed) against the default; without one there is no test."""
    against = pd.Series(dtype=float) if default is None else default.set_index("seed")["value"]
    seeds = sorted(set().union(*(each.index for each in scores), against.index))
    first = np.array([each.reindex(seeds) for each in scores], dtype=float)
    second = np.tile(against.reindex(seeds).to_numpy(float), (len(scores), 1))
    tested = paired_tests(first, second, alpha)
    own = np.array([each.equals(against) for each in scores])
    tested.loc[own, tested.columns.drop("note")] = np.nan
    tested["p_holm"] = holm(tested["p"])
    return tested.assign(significant=tested["p_holm"] <= alpha)


def _value(panel: Panel, x: float) -> str:
    return str(panel.options[int(x)][1]) if in_words(panel) else f"{x:g}"
